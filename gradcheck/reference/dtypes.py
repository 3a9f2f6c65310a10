"""ggml's types: their sizes, and what of a float64 is left once a type holds it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.reference import quantised

Array = NDArray[np.float64]

#: Bytes of an element of a plain type.
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
EPSILONS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
#: From here on a float32 is infinite: halfway between its largest number and the next power of two.
_F32_OVERFLOW = 2.0**128 - 2.0**103


def type_name(word: str) -> str:
    """The type that a case names: `f16` or `TYPE_F16`, `q4_K` or `TYPE_Q4_K`. Raises Unsupported."""
    name = word.removeprefix("TYPE_").lower()
    return name if name in SIZES else quantised.canonical(name)


def is_plain(kind: str) -> bool:
    """Whether each element of a type is stored by itself."""
    return kind in SIZES


def block_of(kind: str) -> tuple[int, int]:
    """The elements that a type stores together and the bytes that they take: ggml's blck_size and type_size."""
    return (1, SIZES[kind]) if kind in SIZES else quantised.block_of(kind)


def row_size(kind: str, n: int) -> int:
    """The bytes of a row of n elements, which is whole blocks."""
    elements, nbytes = block_of(kind)
    return n // elements * nbytes


def check_writable(kind: str) -> None:
    """Raises Unsupported where a type is quantised and gguf has no quantiser of it."""
    if not is_plain(kind):
        quantised.check_quantiser(kind)


def loaded(kind: str, values: NDArray[Any]) -> Array:
    """What a target holds after values were converted to its type; integers are rounded.

    Those of a quantised type are what is stored already: the bytes are the target's, and decoded.
    """
    if not is_plain(kind):
        return np.asarray(values, dtype=np.float64)
    if kind.startswith("i"):
        return np.rint(np.asarray(values, dtype=np.float64))
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return wide.astype(np.float32).astype(np.float64) if kind == "f32" else narrowed(kind, wide)


def narrowed(kind: str, values: Array) -> Array:
    """What a tensor holds of an op's result: a float16 and a bfloat16 are rounded, an integer loses its fraction.

    float32 keeps all digits of the float64, so that the reference is better than what it judges, but not its range.
    A quantised type holds what gguf makes of rows along the last axis. Raises Unsupported where it has no quantiser.
    """
    if not is_plain(kind):
        return quantised.requantised(kind, values)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind.startswith("i"):
            return np.trunc(values)
        if kind == "f16":
            return values.astype(np.float16).astype(np.float64)
        if kind == "bf16":
            return _bfloat16(values.astype(np.float32))
        if kind == "f32":
            fit = values.size and max(values.max(), -values.min()) < _F32_OVERFLOW  # not so where one is NaN
            return values if fit else np.where(np.abs(values) >= _F32_OVERFLOW, np.copysign(np.inf, values), values)
    return values


def _bfloat16(values: NDArray[np.float32]) -> Array:
    """The upper half of each float32, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    upper = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    rounded = upper.astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), rounded).astype(np.float64)
