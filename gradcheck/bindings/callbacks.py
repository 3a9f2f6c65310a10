"""Callbacks that graphs give to ggml_map_custom1 and its kin, by name: a kernel can be an op before ggml knows it.

ggml keeps a bare pointer to a callback and calls it from each of its threads, as thread `ith` of `nth`. A
callback computes the share of `dst` that belongs to its thread, and finds every element by ne and nb.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import NATIVE
from gradcheck.bindings.library import Library
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.errors import InvalidCase
from gradcheck.model.nearest import did_you_mean

Floats = NDArray[np.float32]

#: The ops that run a callback of this process.
OPS = frozenset({"MAP_CUSTOM1", "MAP_CUSTOM2", "MAP_CUSTOM3", "CUSTOM"})
#: name -> (how many sources it reads, what it makes of their rows)
CALLBACKS: dict[str, tuple[int, Callable[..., Floats]]] = {
    "identity": (1, lambda a: a),
    "double": (1, lambda a: a + a),
    "add": (2, lambda a, b: a + b),
    "mul": (2, lambda a, b: a * b),
    "fma": (3, lambda a, b, c: a * b + c),
}
_TYPES = ("f32", "f16")


def complete(call: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A function of ggml without `n_args`, which its array knows, and without `userdata`, which is NULL.

    names: those of all its parameters
    """
    if "userdata" not in names:
        return call
    counted = names.index("n_args") if "n_args" in names else 0

    def run(*given: Any) -> Any:
        arguments = list(given)
        if counted:
            arguments.insert(counted, len(arguments[counted - 1]))
        return call(*arguments, None)

    return run


def callback(library: Library, kind: Any, name: Any, sources: Sequence[Tensor], type_name: str) -> Any:
    """The callback `name` as the ctypes function type `kind`, for sources and an output of type `type_name`.

    Raises InvalidCase where there is none, or where it cannot compute these.
    """
    if name not in CALLBACKS:
        hint = did_you_mean(name, CALLBACKS) if isinstance(name, str) else ""
        raise InvalidCase(f"no callback {name!r}{hint}; there are {', '.join(CALLBACKS)}")
    count = CALLBACKS[name][0]
    if len(sources) != count:
        raise InvalidCase(f"the callback {name} reads {count} source{'s' * (count != 1)}, not {len(sources)}")
    for found in (type_name, *(source.type for source in sources)):
        if found not in _TYPES:
            raise InvalidCase(f"the callback {name} computes {' and '.join(_TYPES)}, not {found}")
    return _made(library, kind, name)


@functools.cache  # ggml keeps the bare pointer: what it points to stays for as long as the process
def _made(library: Library, kind: Any, name: str) -> Any:
    def run(dst: Any, *rest: Any) -> None:
        # map_custom1, 2 and 3 hand the sources over; a custom op finds them in dst.
        *sources, ith, nth, _userdata = rest
        sources = sources or [source for source in dst.contents.src if source]
        _compute(library, CALLBACKS[name][1], dst, sources, ith, nth)

    return kind(run)


def _compute(library: Library, rule: Callable[..., Floats], dst: Any, sources: list[Any], ith: int, nth: int) -> None:
    """Rows [ith, ith + 1) / nth of dst. A source that is smaller is repeated, as ggml_add does it."""
    out = _elements(library, dst)
    rows = out.shape[0] * out.shape[1] * out.shape[2]
    share = np.arange(rows * ith // nth, rows * (ith + 1) // nth)
    at = np.unravel_index(share, out.shape[:3])
    columns = np.arange(out.shape[3])
    read = []
    for source in sources:
        values = _elements(library, source)
        rows_of_source = tuple(index % size for index, size in zip(at, values.shape[:3], strict=True))
        read.append(values[rows_of_source][:, columns % values.shape[3]].astype(np.float32))
    out[at] = rule(*read)


def _elements(library: Library, pointer: Any) -> NDArray[Any]:
    """The tensor's memory in NumPy's order, by its strides."""
    struct = pointer.contents
    dtype = NATIVE[library.type_names[struct.type]]
    ne, nb = tuple(struct.ne), tuple(struct.nb)
    extent = sum((n - 1) * step for n, step in zip(ne, nb, strict=True)) + dtype.itemsize
    memory = (ctypes.c_uint8 * extent).from_address(struct.data)
    return np.ndarray(ne[::-1], dtype, memory, strides=nb[::-1])
