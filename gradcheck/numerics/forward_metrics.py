"""How far an output is from its reference: the numbers behind the verdict of `eval`."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def nmse(got: Array, want: Array) -> float:
    """mean((got - want)^2) / mean(want^2), as the C++ tool has it; NaN where either is not finite.

    Elements that are the same infinity on both sides are equal and left out.
    """
    same = got == want
    both = ~(same & np.isinf(want))
    with np.errstate(invalid="ignore", over="ignore"):
        error = float(np.sum((got[both] - want[both]) ** 2))
        size = float(np.sum(want[both] ** 2))
    if error == 0:
        return 0.0
    return error / size if size else float("inf")


def element_error(got: Array, want: Array) -> Array:
    """abs(got - want) / (abs(want) + rms(want)) of each element; 0 where both are the same, also infinite."""
    finite = want[np.isfinite(want)]
    rms = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        scale = np.abs(want) + rms
        error = np.divide(np.abs(got - want), scale, out=np.full(got.shape, np.inf), where=scale > 0)
    return np.where(same, 0.0, error)


def mismatched_specials(got: Array, want: Array) -> NDArray[np.bool_]:
    """Where NaN or an infinity stands on one side only, or an infinity has another sign."""
    special = ~np.isfinite(got) | ~np.isfinite(want)
    agree = (np.isnan(got) & np.isnan(want)) | (got == want)
    mask: NDArray[np.bool_] = special & ~agree
    return mask
