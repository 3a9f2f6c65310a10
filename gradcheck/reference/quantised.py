"""Quantised types as the gguf package reads and writes them: in NumPy, apart from ggml's own code.

Everything that is asked of gguf is asked here, and it is not imported before a case has such a type.
"""

import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.errors import Unsupported

Bytes = NDArray[np.uint8]

#: Elements that are converted at a time: few enough to stay in a processor's cache.
_CHUNK = 1 << 17


def canonical(name: str) -> str:
    """A quantised type's name as ggml spells it, `q4_K`. Raises Unsupported where gguf does not know it."""
    lower = name.lower()
    if lower.upper() not in _gguf().GGMLQuantizationType.__members__:
        raise Unsupported(f"the NumPy reference has no type {name}: {_package()} does not know it")
    return f"{lower[:-1]}K" if lower.endswith("_k") else lower


@functools.cache
def block_of(kind: str) -> tuple[int, int]:
    """How many elements of a type are stored together, and in how many bytes. Raises Unsupported."""
    elements, nbytes = _gguf().GGML_QUANT_SIZES[_number(kind)]
    return elements, nbytes


def dequantised(kind: str, data: Bytes) -> NDArray[np.float32]:
    """The flat values of whole blocks. Raises Unsupported where gguf cannot decode the type."""
    check_decoder(kind)
    elements, nbytes = block_of(kind)
    out = np.empty((data.size // nbytes, elements), dtype=np.float32)
    _in_chunks(lambda blocks: _gguf().dequantize(blocks, _number(kind)), data.reshape(-1, nbytes), out)
    return out.reshape(-1)


def quantised(kind: str, values: NDArray[np.floating[Any]]) -> Bytes:
    """Flat values as the bytes of whole blocks. Raises Unsupported where gguf cannot encode the type."""
    check_quantiser(kind)
    elements, nbytes = block_of(kind)
    out = np.empty((values.size // elements, nbytes), dtype=np.uint8)
    single = values.astype(np.float32, copy=False).reshape(-1, elements)
    _in_chunks(lambda blocks: _gguf().quantize(blocks, _number(kind)), single, out)
    return out.reshape(-1)


def requantised(kind: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is left of values, rows along the last axis, once the type has held them. Raises Unsupported."""
    return dequantised(kind, quantised(kind, values)).astype(np.float64).reshape(values.shape)


@functools.cache
def check_decoder(kind: str) -> None:
    """Raises Unsupported where gguf cannot decode a type."""
    try:
        _gguf().dequantize(np.zeros((1, block_of(kind)[1]), dtype=np.uint8), _number(kind))
    except NotImplementedError:
        raise Unsupported(f"{_package()} has no decoder of {kind}") from None


@functools.cache
def check_quantiser(kind: str) -> None:
    """Raises Unsupported where gguf cannot encode a type."""
    try:
        _gguf().quantize(np.zeros((1, block_of(kind)[0]), dtype=np.float32), _number(kind))
    except NotImplementedError:
        raise Unsupported(f"the NumPy reference cannot write {kind}: {_package()} has no quantiser of it") from None


def _in_chunks(convert: Callable[[NDArray[Any]], NDArray[Any]], blocks: NDArray[Any], out: NDArray[Any]) -> None:
    """Convert blocks, one each row, into the rows of `out`."""
    step = max(1, _CHUNK // max(blocks.shape[1], out.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, len(blocks), step):
            # gguf goes through the rows by sixteen; as one long row they are converted at once.
            converted = convert(blocks[start : start + step].reshape(1, -1))
            out[start : start + step] = converted.reshape(-1, out.shape[1])


@functools.cache
def _number(kind: str) -> Any:
    return _gguf().GGMLQuantizationType[canonical(kind).upper()]


@functools.cache
def _gguf() -> Any:
    import gguf  # it takes a tenth of a second, which most workers need not spend

    return gguf


@functools.cache
def _package() -> str:
    return f"gguf {version('gguf')}"
