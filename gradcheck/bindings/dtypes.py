"""ggml's types: arrays to stored bytes and back."""

import ctypes
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.abort import Abort
from gradcheck.bindings.library import Library
from gradcheck.model.errors import InvalidCase, LibraryError
from gradcheck.model.nearest import did_you_mean

Bytes = NDArray[np.uint8]

#: Types that NumPy has too.
NATIVE: dict[str, np.dtype[Any]] = {
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "f64": np.dtype("<f8"),
    "i8": np.dtype("i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
}
_EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
#: Before it quantises to these, ggml searches for neighbours in a grid: seconds, in every process.
_SEARCHED = ("iq1_", "iq2_")
#: Scales are f16: smaller peaks, and the inverse ones, are for ggml's own search.
_SMALLEST_PEAK = 2.0**-8
#: Blocks that are drawn in one go.
_DRAWN_BLOCKS = 4096
#: A quantised value is good to about an eighth of its block's scale.
_QUANTISED_EPS = 2.0**-3


def type_id(library: Library, name: str) -> int:
    """The number that ggml gives a type. Raises InvalidCase with the nearest name."""
    try:
        return library.type_ids[name]
    except KeyError:
        raise InvalidCase(f"ggml has no type `{name}`{did_you_mean(name, library.type_ids)}") from None


def epsilon(type_name: str) -> float | None:
    """The machine epsilon of a float type, 1/8 for a quantised one; None for integers."""
    if type_name in _EPS:
        return _EPS[type_name]
    return None if type_name in NATIVE else _QUANTISED_EPS


def is_packed(library: Library, type_name: str) -> bool:
    """Whether a type stores several elements together in a block."""
    return int(library.ggml.ggml_blck_size(type_id(library, type_name))) > 1


def encode(library: Library, type_name: str, values: NDArray[Any], row: int) -> Bytes:
    """Values (any shape, C order) as the bytes of a contiguous tensor with rows of `row` elements."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if type_name in NATIVE:
        dtype = NATIVE[type_name]
        if dtype.kind == "i" and flat.dtype.kind == "f":
            flat = np.rint(flat)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(flat, dtype=dtype).view(np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.ascontiguousarray(flat, dtype=np.float32)
    if type_name == "bf16":
        return to_bfloat16(single).view(np.uint8)
    return _quantise(library, type_name, single, row)


def decode(library: Library, type_name: str, raw: NDArray[Any]) -> NDArray[Any]:
    """The flat values of contiguous bytes: float64 or integers as stored, float32 for packed types."""
    data = np.ascontiguousarray(raw).reshape(-1).view(np.uint8)
    if type_name in NATIVE:
        return data.view(NATIVE[type_name])
    if type_name == "bf16":
        return from_bfloat16(data.view(np.uint16))
    return _dequantise(library, type_name, data)


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest, ties to even; a NaN stays a quiet NaN."""
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def from_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Each bfloat16 as the float32 that it stands for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _quantise(library: Library, name: str, values: NDArray[np.float32], row: int) -> Bytes:
    ggml, number = library.ggml, type_id(library, name)
    if not ggml.ggml_is_quantized(number):
        raise InvalidCase(f"values of type {name} cannot be written")
    rows = values.size // row if row else 0
    out = np.empty(rows * ggml.ggml_row_size(number, row), dtype=np.uint8)
    if not out.size:
        return out
    peak = float(np.max(np.abs(values)))
    if name.startswith(_SEARCHED) and _SMALLEST_PEAK < peak < 1 / _SMALLEST_PEAK and np.ptp(values):
        return _drawn_blocks(library, name, values, peak)
    weights = None
    if ggml.ggml_quantize_requires_imatrix(number):
        importance = np.ones(row, dtype=np.float32)
        weights = _floats(importance)
    try:
        library.builder.run(
            lambda: ggml.ggml_quantize_chunk(number, _floats(values), out.ctypes.data, 0, rows, row, weights)
        )
    except Abort:
        raise InvalidCase(f"ggml cannot quantise values to {library.type_names[number]}") from None
    return out


def _drawn_blocks(library: Library, name: str, values: NDArray[np.float32], peak: float) -> Bytes:
    """Blocks of random bits, every pattern of which means something, about as large as the values with their `peak`.

    They hold codes and scales that no quantiser would choose, and a kernel must read those too. The same values
    give the same blocks.
    """
    ggml, number = library.ggml, type_id(library, name)
    size, elements = ggml.ggml_type_size(number), ggml.ggml_blck_size(number)
    rng = np.random.default_rng(zlib.crc32(values.tobytes()))
    found: list[Bytes] = []
    missing = values.size // elements
    while missing > 0:
        blocks = rng.integers(0, 256, (_DRAWN_BLOCKS, size), dtype=np.uint8)
        peaks = np.abs(_dequantise(library, name, blocks)).reshape(-1, elements).max(axis=1)
        fitting = blocks[(peaks >= peak / 2) & (peaks < 2 * peak)][:missing]
        found.append(fitting)
        missing -= len(fitting)
    return np.concatenate(found).reshape(-1)


def _dequantise(library: Library, name: str, data: Bytes) -> NDArray[np.float32]:
    ggml, number = library.ggml, type_id(library, name)
    traits = ggml.ggml_get_type_traits(number).contents
    if not traits.to_float:
        raise LibraryError(f"ggml cannot convert {name} to float")
    out = np.empty(data.size // traits.type_size * traits.blck_size, dtype=np.float32)
    if out.size:
        traits.to_float(data.ctypes.data, _floats(out), out.size)
    return out


def _floats(array: NDArray[np.float32]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
