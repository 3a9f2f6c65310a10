"""Outputs that are indices, judged by what they pick, so that equal elements may stand for one another."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def picked(indices: Array, source: Array, *, ordered: bool) -> tuple[Array, list[str]]:
    """The elements of each row of `source` that a row of `indices` picks, and what is wrong with the indices.

    indices: (..., k), whole numbers in float64; source: (..., n), with the same rows
    ordered: False sorts what is picked, so that its order is free
    An index that picks nothing gives NaN.
    """
    count = source.shape[-1]
    inside = (indices >= 0) & (indices < count) & (indices == np.floor(indices))
    faults = []
    if not inside.all():
        faults.append(f"{int((~inside).sum())} indices are no columns of the {count} that there are")
    columns = np.where(inside, indices, 0).astype(np.int64)
    values = np.take_along_axis(source, columns, axis=-1)
    values[~inside] = np.nan
    in_order = np.sort(indices, axis=-1)
    twice = int((in_order[..., 1:] == in_order[..., :-1]).sum())
    if twice:
        faults.append(f"{twice} indices stand in their row before")
    return values if ordered else np.sort(values, axis=-1), faults
