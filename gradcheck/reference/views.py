"""Windows on a tensor's memory: nothing is computed. Strides and offsets are in bytes of the tensor's type."""

import math
from collections.abc import Callable
from typing import Any

from gradcheck.model.case import Shape
from gradcheck.reference.dtypes import block_of
from gradcheck.reference.tensor import Tensor, contiguous, demand, shape4


def _window(a: Tensor, ne: Shape, nb: Shape, offset: int) -> Tensor:
    return Tensor(a.type, ne, nb, a.memory, a.offset + offset, (a,))


def view_tensor(a: Tensor) -> Tensor:
    """All of `a`, with its strides."""
    return _window(a, a.ne, a.nb, 0)


def view_1d(a: Tensor, ne0: int, offset: int) -> Tensor:
    """ne0 elements without gaps, from a byte of `a` on."""
    ne = shape4(ne0)
    return _window(a, ne, contiguous(a.type, ne), offset)


def view_2d(a: Tensor, ne0: int, ne1: int, nb1: int, offset: int) -> Tensor:
    """ne1 rows of ne0 elements; a row begins nb1 bytes after the one before it."""
    return _window(a, shape4(ne0, ne1), (block_of(a.type)[1], nb1, nb1 * ne1, nb1 * ne1), offset)


def view_3d(a: Tensor, ne0: int, ne1: int, ne2: int, nb1: int, nb2: int, offset: int) -> Tensor:
    """ne2 such matrices, nb2 bytes apart."""
    return _window(a, shape4(ne0, ne1, ne2), (block_of(a.type)[1], nb1, nb2, nb2 * ne2), offset)


def view_4d(a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """ne3 of those, nb3 bytes apart."""
    return _window(a, shape4(ne0, ne1, ne2, ne3), (block_of(a.type)[1], nb1, nb2, nb3), offset)


def permute(a: Tensor, axis0: int, axis1: int, axis2: int, axis3: int) -> Tensor:
    """Dimension i of `a` becomes dimension axis<i> of the result."""
    axes = (axis0, axis1, axis2, axis3)
    demand(sorted(axes) == [0, 1, 2, 3], f"permute: {list(axes)} is no order of the dimensions 0 to 3")
    old = [axes.index(new) for new in range(4)]
    return _window(a, shape4(*(a.ne[i] for i in old)), shape4(*(a.nb[i] for i in old)), 0)


def transpose(a: Tensor) -> Tensor:
    """Dimensions 0 and 1 change places."""
    return permute(a, 1, 0, 2, 3)


def reshape(a: Tensor, b: Tensor) -> Tensor:
    """The elements of `a`, which has no gaps, in b's shape."""
    return _reshaped(a, *b.ne)


def _reshaped(a: Tensor, *ne: int) -> Tensor:
    demand(a.is_contiguous, f"reshape: {a} is not contiguous")
    demand(math.prod(ne) == a.elements, f"reshape: {a} has not the elements of {list(ne)}")
    return _window(a, shape4(*ne), contiguous(a.type, shape4(*ne)), 0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "view_tensor": view_tensor,
    "view_1d": view_1d,
    "view_2d": view_2d,
    "view_3d": view_3d,
    "view_4d": view_4d,
    "permute": permute,
    "transpose": transpose,
    "reshape": reshape,
    "reshape_1d": _reshaped,
    "reshape_2d": _reshaped,
    "reshape_3d": _reshaped,
    "reshape_4d": _reshaped,
}
