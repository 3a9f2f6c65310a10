"""Functions of two tensors. `b` is repeated to the shape of `a`; the result has the type and shape of `a`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array, type_name
from gradcheck.reference.tensor import Rule, Tensor, demand, like, new, over, shape4


def tiled(x: Array, shape: tuple[int, ...]) -> Array:
    """Repeat x as a whole along each axis until it has the shape."""
    if x.shape == shape or not x.size:
        return x
    return np.tile(x, [want // have for want, have in zip(shape, x.shape, strict=True)])


def fits(a: Tensor, b: Tensor) -> bool:
    """Whether `b` can be repeated to the shape of `a`."""
    return all(have and want % have == 0 for want, have in zip(a.ne, b.ne, strict=True)) or not a.elements


def _two(rule: Rule, make: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def function(a: Tensor, b: Tensor) -> Tensor:
        demand(fits(a, b), f"{b} cannot be repeated to {a}")
        return make(a, lambda x, y: rule(x, tiled(y, x.shape)), b)

    return function


def add1(a: Tensor, b: Tensor) -> Tensor:
    """Add a number: a + b[0]."""
    demand(b.elements == 1, f"add1: {b} is not a single number")
    return like(a, lambda x, y: x + y.ravel()[0], b)


def add1_inplace(a: Tensor, b: Tensor) -> Tensor:
    """Add a number in place: a + b[0]."""
    demand(b.elements == 1, f"add1: {b} is not a single number")
    return over(a, lambda x, y: x + y.ravel()[0], b)


def add_cast(a: Tensor, b: Tensor, kind: str) -> Tensor:
    """The sum a + b as another type."""
    demand(fits(a, b), f"{b} cannot be repeated to {a}")
    return new(type_name(kind), a.ne, lambda x, y: x + tiled(y, x.shape), a, b)


def add_id(a: Tensor, b: Tensor, ids: Tensor) -> Tensor:
    """out[:, e, t] = a[:, e, t] + b[:, ids[e, t]]."""

    def rule(x: Array, y: Array, chosen: Array) -> Array:
        rows: Array = y[0, 0][chosen[0, 0].astype(np.int64)]
        return x + rows

    return like(a, rule, b, ids)


def repeat(a: Tensor, b: Tensor) -> Tensor:
    """Repeat a to the shape of b."""
    return repeat_4d(a, *b.ne)


def repeat_4d(a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int) -> Tensor:
    """Repeat a to a shape: out[i] = a[i mod a.ne]."""
    out = new(a.type, shape4(ne0, ne1, ne2, ne3), lambda x: tiled(x, (ne3, ne2, ne1, ne0)), a)
    demand(fits(out, a), f"{a} cannot be repeated to {out}")
    return out


def repeat_back(a: Tensor, b: Tensor) -> Tensor:
    """The adjoint of repeat: for each element of b's shape the sum over its repetitions in a."""
    demand(fits(a, b), f"{a} is no repetition of {b}")

    def rule(x: Array) -> Array:
        parts = [size for want, have in zip(b.shape, x.shape, strict=True) for size in (have // want, want)]
        out: Array = x.reshape(parts).sum(axis=(0, 2, 4, 6))
        return out

    return new(a.type, b.ne, rule, a)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _two(np.add, like),
    "add_inplace": _two(np.add, over),
    "sub": _two(np.subtract, like),
    "sub_inplace": _two(np.subtract, over),
    "mul": _two(np.multiply, like),
    "mul_inplace": _two(np.multiply, over),
    "div": _two(np.divide, like),
    "div_inplace": _two(np.divide, over),
    "add1": add1,
    "add1_inplace": add1_inplace,
    "add_cast": add_cast,
    "add_id": add_id,
    "repeat": repeat,
    "repeat_4d": repeat_4d,
    "repeat_back": repeat_back,
}
