"""Pooling: the largest element, or the mean, of each window of a signal or an image."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.conv import columns
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new

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


def _pooled(
    a: Tensor, kind: str | int, k: tuple[int, int], s: tuple[int, int], p: tuple[int, int], *, count_padding: bool
) -> Tensor:
    if kind not in (0, 1, "OP_POOL_MAX", "OP_POOL_AVG"):
        raise InvalidCase(f"pool: there is no kind {kind!r}")
    wide = (a.ne[0] + 2 * p[1] - k[1]) // s[1] + 1
    high = (a.ne[1] + 2 * p[0] - k[0]) // s[0] + 1
    demand(wide > 0 and high > 0, f"pool: {a} is too small")

    def windows(x: Array) -> Array:
        return columns(x[:, :, None], (1, *k), (1, *s), (0, *p), (1, 1, 1))[:, 0, ..., 0, :, :]

    def rule(x: Array) -> Array:
        inside = windows(np.ones_like(x)) > 0
        parts = windows(x)
        if kind in (0, "OP_POOL_MAX"):
            out = np.where(inside, parts, _LOWEST).max(axis=(-2, -1))
        else:
            count = k[0] * k[1] if count_padding else inside.sum(axis=(-2, -1))
            out = parts.sum(axis=(-2, -1)) / np.maximum(count, 1)
        pooled: Array = out.transpose(0, 3, 1, 2)
        return pooled

    return new("f32", (wide, high, *a.ne[2:]), rule, a)


FUNCTIONS: dict[str, Callable[..., Any]] = {"pool_1d": pool_1d, "pool_2d": pool_2d}
