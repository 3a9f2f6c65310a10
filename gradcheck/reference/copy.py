"""Copies: into new memory, into another tensor, into a region of one."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcheck.reference.dtypes import Array, block_of, type_name
from gradcheck.reference.tensor import Memory, Rule, Tensor, demand, like, new, over, shape4


def _same(x: Array) -> Array:
    return x


def dup(a: Tensor) -> Tensor:
    """A copy without gaps."""
    return like(a, _same, as_is=True)


def dup_inplace(a: Tensor) -> Tensor:
    """A view of `a`, onto which `a` is copied."""
    return over(a, _same, as_is=True)


def cast(a: Tensor, kind: str) -> Tensor:
    """A copy without gaps, as another type; a cast to an integer drops the fraction."""
    wanted = type_name(kind)
    return new(wanted, a.ne, _same, a, as_is=a.type == wanted)


def cpy(a: Tensor, b: Tensor) -> Tensor:
    """The elements of `a`, in order, written over those of `b`, in order; the result is a view of `b`."""
    demand(a.elements == b.elements, f"cpy: {a} does not fill {b}")
    return Tensor(
        b.type, b.ne, b.nb, b.memory, b.offset, (a, b), lambda x, y: x.reshape(y.shape), as_is=a.type == b.type
    )


def _cont(a: Tensor, *ne: int) -> Tensor:
    demand(math.prod(ne) == a.elements, f"cont: {a} has not the elements of {list(ne)}")
    shape = shape4(*ne)
    return new(a.type, shape, lambda x: x.reshape(shape[::-1]), a, as_is=True)


def set_region(a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """`a` with b written into the window of b's shape that has these strides and this offset, in bytes, in `a`."""
    return like(a, _region(a, b, (nb1, nb2, nb3), offset, False), b)


def set_region_inplace(a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """The same, written into `a`."""
    return over(a, _region(a, b, (nb1, nb2, nb3), offset, False), b)


def acc(a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """`a` with b added to such a window; an element that is in it more than once gets the sum."""
    return like(a, _region(a, b, (nb1, nb2, nb3), offset, True), b)


def acc_inplace(a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """The same, written into `a`."""
    return over(a, _region(a, b, (nb1, nb2, nb3), offset, True), b)


def _region(a: Tensor, b: Tensor, nb: tuple[int, int, int], offset: int, add: bool) -> Rule:
    demand(a.is_contiguous, f"{a} is not contiguous")
    size = block_of(a.type)[1]
    # It refuses a window that leaves the elements of a.
    window = Tensor(a.type, b.ne, (size, *nb), Memory(a.elements), offset)

    def rule(x: Array, y: Array) -> Array:
        places = np.arange(a.elements)
        steps = tuple(step // size * places.itemsize for step in reversed(window.nb))
        inside = as_strided(places[offset // size :], y.shape, steps).ravel()
        flat = np.array(x).reshape(-1)
        if add:
            np.add.at(flat, inside, y.ravel())
        else:
            flat[inside] = y.ravel()
        return flat.reshape(x.shape)

    return rule


def concat(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """Both tensors, b after a along a dimension."""
    demand(0 <= dim < 4 and a.type == b.type, f"concat: {a} and {b} along {dim}")
    demand(all(i == dim or a.ne[i] == b.ne[i] for i in range(4)), f"concat: {a} and {b} differ beside dimension {dim}")
    ne = shape4(*(n + b.ne[i] * (i == dim) for i, n in enumerate(a.ne)))
    return new(a.type, ne, lambda x, y: np.concatenate((x, y), axis=3 - dim), a, b, as_is=True)


def set_1d(a: Tensor, b: Tensor, offset: int) -> Tensor:
    """set_region with the strides of `a`."""
    return set_region(a, b, a.nb[1], a.nb[2], a.nb[3], offset)


def set_1d_inplace(a: Tensor, b: Tensor, offset: int) -> Tensor:
    """The same, written into `a`."""
    return set_region_inplace(a, b, a.nb[1], a.nb[2], a.nb[3], offset)


def set_2d(a: Tensor, b: Tensor, nb1: int, offset: int) -> Tensor:
    """set_region with a stride for the rows and else the strides of `a`."""
    return set_region(a, b, nb1, a.nb[2], a.nb[3], offset)


def set_2d_inplace(a: Tensor, b: Tensor, nb1: int, offset: int) -> Tensor:
    """The same, written into `a`."""
    return set_region_inplace(a, b, nb1, a.nb[2], a.nb[3], offset)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dup": dup,
    "dup_inplace": dup_inplace,
    "cast": cast,
    "cpy": cpy,
    "cont": dup,
    "cont_1d": _cont,
    "cont_2d": _cont,
    "cont_3d": _cont,
    "cont_4d": _cont,
    "set": set_region,
    "set_inplace": set_region_inplace,
    "set_1d": set_1d,
    "set_1d_inplace": set_1d_inplace,
    "set_2d": set_2d,
    "set_2d_inplace": set_2d_inplace,
    "acc": acc,
    "acc_inplace": acc_inplace,
    "concat": concat,
}
