"""Sums, means, counts and orders, of a row or of everything."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.case import Shape
from gradcheck.model.errors import InvalidCase
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, new


def _one_a_row(a: Tensor) -> Shape:
    return (1, *a.ne[1:])


def sum_all(a: Tensor) -> Tensor:
    """The sum of all elements: ne = [1, 1, 1, 1]."""
    return new(a.type, (1, 1, 1, 1), lambda x: np.sum(x).reshape(1, 1, 1, 1), a)


def sum_rows(a: Tensor) -> Tensor:
    """The sum of each row: ne[0] becomes 1."""
    return new(a.type, _one_a_row(a), lambda x: x.sum(axis=-1, keepdims=True), a)


def mean(a: Tensor) -> Tensor:
    """The mean of each row: ne[0] becomes 1."""
    return new("f32", _one_a_row(a), lambda x: x.mean(axis=-1, keepdims=True), a)


def cumsum(a: Tensor) -> Tensor:
    """Running sums along each row: out[i] = a[0] + ... + a[i]."""
    return like(a, lambda x: np.cumsum(x, axis=-1))


def argmax(a: Tensor) -> Tensor:
    """For each row of a matrix the first index of its largest element: ne = [a.ne[1]], i32."""
    demand(a.ne[2] == a.ne[3] == 1, f"argmax: {a} is not a matrix")

    def rule(x: Array) -> Array:
        first: Array = np.argmax(x[0, 0], axis=-1).reshape(1, 1, 1, -1).astype(np.float64)
        return first

    return new("i32", (a.ne[1], 1, 1, 1), rule, a)


def argsort(a: Tensor, order: str | int) -> Tensor:
    """The indices that sort each row, ascending (0) or descending (1); equal elements stay in order. i32."""
    if order not in (0, 1, "SORT_ORDER_ASC", "SORT_ORDER_DESC"):
        raise InvalidCase(f"argsort: there is no order {order!r}")
    sign = 1 if order in (0, "SORT_ORDER_ASC") else -1
    return new("i32", a.ne, lambda x: np.argsort(sign * x, axis=-1, kind="stable").astype(np.float64), a)


def top_k(a: Tensor, k: int) -> Tensor:
    """The indices of the k largest elements of each row, i32. ggml promises no order; here the largest comes first."""
    demand(0 < k <= a.ne[0], f"top_k: the {k} largest of {a}")

    def rule(x: Array) -> Array:
        chosen = np.argpartition(-x, k - 1, axis=-1)[..., :k]
        order = np.argsort(-np.take_along_axis(x, chosen, axis=-1), axis=-1)
        return np.take_along_axis(chosen, order, axis=-1).astype(np.float64)

    return new("i32", (k, *a.ne[1:]), rule, a)


def argsort_top_k(a: Tensor, k: int) -> Tensor:
    """The first k of each row of argsort, descending: a view of it."""
    demand(0 < k <= a.ne[0], f"argsort_top_k: the {k} largest of {a}")
    order = argsort(a, "SORT_ORDER_DESC")
    return Tensor("i32", (k, *a.ne[1:]), order.nb, order.memory, 0, (order,))


def count_equal(a: Tensor, b: Tensor) -> Tensor:
    """How many elements are the same in both: ne = [1], i64."""
    demand(a.ne == b.ne, f"count_equal: {a} and {b} differ")
    return new("i64", (1, 1, 1, 1), lambda x, y: np.sum(x == y, dtype=np.float64).reshape(1, 1, 1, 1), a, b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": sum_all,
    "sum_rows": sum_rows,
    "mean": mean,
    "cumsum": cumsum,
    "argmax": argmax,
    "argsort": argsort,
    "top_k": top_k,
    "argsort_top_k": argsort_top_k,
    "count_equal": count_equal,
}
