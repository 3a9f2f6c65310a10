"""Pooling: the largest element, or the mean, of each window of a signal or an image."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new
from gradcheck.reference.windows import Windows

#: What ggml gives for the maximum of a window that lies in the padding as a whole.
_LOWEST = -float(np.finfo(np.float32).max)


def pool_1d(a: Tensor, kind: str | int, k0: int, s0: int, p0: int) -> Tensor:
    """Windows of k0 elements of each row, s0 apart, the first one p0 before the row: ne[0] is (ne[0]+2p-k)/s + 1.

    The mean is over the elements that exist; the padding does not count.
    """
    return _pooled(a, kind, (1, k0), (1, s0), (0, p0), count_padding=False)


def pool_2d(a: Tensor, kind: str | int, k0: int, k1: int, s0: int, s1: int, p0: float, p1: float) -> Tensor:
    """The same with windows of k0 x k1 elements of each matrix; here the mean is over all k0 k1, with zeros outside."""
    return _pooled(a, kind, (k1, k0), (s1, s0), (int(p1), int(p0)), count_padding=True)


def is_maximum(kind: str | int) -> bool:
    """Whether it is the maximum that is meant. Raises InvalidCase where it is not the mean either."""
    if kind not in (0, 1, "OP_POOL_MAX", "OP_POOL_AVG"):
        raise InvalidCase(f"pool: there is no kind {kind!r}")
    return kind in (0, "OP_POOL_MAX")


def pool_windows(a: Tensor, k: tuple[int, int], s: tuple[int, int], p: tuple[int, int]) -> Windows:
    """The windows on each matrix of `a`: height, width. Raises InvalidCase where `a` is smaller than they are."""
    at = Windows((1, a.ne[1], a.ne[0]), (1, *k), (1, *s), (0, *p))
    demand(all(a.ne[1 - i] + 2 * p[i] >= k[i] for i in range(2)), f"pool: {a} is too small")
    return at


def lowest_outside(at: Windows, x: Array) -> Array:
    """The windows with the lowest number where they leave the matrices: [n, channels, height, width, kernel...]."""
    parts = at.columns(x[:, :, None])
    inside = at.columns(np.ones((1, 1, 1, *x.shape[2:]))) > 0
    return np.where(inside, parts, _LOWEST)[:, 0, ..., 0, :, :].transpose(0, 3, 1, 2, 4, 5)


def _pooled(
    a: Tensor, kind: str | int, k: tuple[int, int], s: tuple[int, int], p: tuple[int, int], *, count_padding: bool
) -> Tensor:
    at, largest = pool_windows(a, k, s, p), is_maximum(kind)

    def rule(x: Array) -> Array:
        if largest:
            return np.asarray(lowest_outside(at, x).max(axis=(-2, -1)))
        total = at.columns(x[:, :, None]).sum(axis=(-2, -1))[:, 0, ..., 0].transpose(0, 3, 1, 2)
        if count_padding:
            return np.asarray(total / (k[0] * k[1]))
        count = at.columns(np.ones((1, 1, 1, *x.shape[2:]))).sum(axis=(-2, -1))[:, 0, ..., 0].transpose(0, 3, 1, 2)
        return np.asarray(total / np.maximum(count, 1))

    return new("f32", (at.counts[2], at.counts[1], *a.ne[2:]), rule, a)


FUNCTIONS: dict[str, Callable[..., Any]] = {"pool_1d": pool_1d, "pool_2d": pool_2d}
