"""Which elements of a param are judged."""

import itertools

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


def pick_elements(shape: tuple[int, ...], limit: int, rng: Generator) -> NDArray[np.int64]:
    """Flat indices (C order) of at most `limit` elements, ascending.

    All of them when there are no more than `limit`. Else a random sample that always has the first, the last
    and the corners along every axis: a kernel goes wrong first in its tails. A `limit` below the number of
    corners keeps the first and the last.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if count <= limit:
        return np.arange(count, dtype=np.int64)
    ends = [sorted({0, size - 1}) for size in shape]
    corners = sorted({int(np.ravel_multi_index(corner, shape)) for corner in itertools.product(*ends)})
    if len(corners) > limit:
        corners = [0, count - 1][:limit]
    chosen = set(corners)
    # A sample without replacement that skips what is there already; the surplus covers the collisions.
    for index in rng.choice(count, size=min(count, limit + len(corners)), replace=False):
        if len(chosen) >= limit:
            break
        chosen.add(int(index))
    return np.array(sorted(chosen), dtype=np.int64)


def unravel_ne(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The position of a flat index in ggml's order (i0 first) for an array of NumPy shape `shape`."""
    return tuple(int(i) for i in reversed(np.unravel_index(index, shape)))
