"""Rows by number."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.reference.binary import tiled
from gradcheck.reference.dtypes import Array, check_writable, narrowed
from gradcheck.reference.tensor import Tensor, demand, new, over


def get_rows(a: Tensor, rows: Tensor) -> Tensor:
    """out[:, i, b, c] = a[:, rows[i, b, c], b, c]: a [n, m, b, c], rows [r, b, c], out [n, r, b, c].

    The result is f32, or i32 where `a` is.
    """
    demand(a.ne[2:] == rows.ne[1:3] and rows.ne[3] == 1, f"get_rows: {rows} names no rows of {a}")

    def rule(x: Array, chosen: Array) -> Array:
        return np.take_along_axis(x, _numbers(chosen[0], x.shape[2])[..., None], axis=2)

    return new("i32" if a.type == "i32" else "f32", (a.ne[0], rows.ne[0], *a.ne[2:]), rule, a, rows)


def get_rows_back(grad: Tensor, rows: Tensor, shape: Tensor) -> Tensor:
    """The adjoint of get_rows for matrices: row r of the result is the sum of the rows of `grad` that came from r.

    Rows of `grad` beyond the row numbers are not read.
    """
    demand(grad.ne[0] == shape.ne[0] and grad.ne[1] >= rows.ne[0], f"get_rows_back: {grad} and {rows} do not fit")

    def rule(g: Array, chosen: Array) -> Array:
        out = np.zeros((1, 1, shape.ne[1], shape.ne[0]))
        numbers = _numbers(chosen.ravel(), shape.ne[1])
        np.add.at(out[0, 0], numbers, g[0, 0, : numbers.size])
        return out

    return new("f32", (*shape.ne[:2], 1, 1), rule, grad, rows)


def set_rows(a: Tensor, b: Tensor, rows: Tensor) -> Tensor:
    """a[:, rows[i, c, d], c, d] = b[:, i, c, d], written into `a`; rows are repeated along dimensions 1 and 2."""
    demand(a.ne[0] == b.ne[0] and a.ne[2:] == b.ne[2:] and b.ne[1] == rows.ne[0], f"set_rows: {b} is no part of {a}")
    check_writable(a.type)

    def rule(x: Array, values: Array, chosen: Array) -> Array:
        out = np.array(x)
        if not values.size:
            return out
        numbers = _numbers(tiled(chosen[0], values.shape[:3]), x.shape[2])
        # The other rows stay as they are stored: to quantise them once more could change them.
        np.put_along_axis(out, numbers[..., None], narrowed(a.type, values), axis=2)
        return out

    return over(a, rule, b, rows, as_is=True)


def _numbers(rows: Array, limit: int) -> NDArray[np.int64]:
    numbers = rows.astype(np.int64)
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < limit):
        raise IndexError(f"a row number is not from 0 to {limit - 1}")
    return numbers


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "get_rows": get_rows,
    "get_rows_back": get_rows_back,
    "set_rows": set_rows,
}
