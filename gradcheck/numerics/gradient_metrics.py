"""How far backprop is from the numeric gradient: the numbers behind the verdict of `grad`."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.numerics.differences import Derivative
from gradcheck.numerics.projection import SIGMAS

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Where D(h) and D(h/2) differ, or the slope jumps, by more than this share of the gradient, beyond rounding,
#: there is a kink.
KINK_SHARE = 2.0**-7
#: A gap or a jump below this many roundings may be nothing else.
NOISE_SLACK = 4.0
#: At a kink backprop may be so many bends from n: slopes of both sides, and what two secants know of them.
KINK_SLACK = 2.0
#: A numeric value below this many of its uncertainties is not told from zero: no relative error is made of it.
RESOLVED = 64.0
#: What is smaller than this share of the RMS of the gradient has no relative error either.
NEGLIGIBLE = 1e-12
#: How often the worst element of a case may be beyond what it is allowed by chance alone.
CHANCE = 1e-5
#: Absolute part of the tolerance of one element, as a share of the RMS of the gradient: backprop itself
#: rounds, and what it cancels is lost in proportion to what it adds up.
ABSOLUTE_SHARE = 1e-3


@dataclass(frozen=True)
class Judged:
    """Element by element comparison of backprop a with numeric n at the chosen elements of one param.

    kink: the numeric gradient does not exist or cannot be found there: no relative error is made of it, but a must
        lie within the slopes that are seen around x
    small: judged by their absolute error alone, since n is not told from zero
    excess: abs(a - n) less what the worst of so many elements may be off by chance (at a kink also the bend), in units
        of max(abs(a), abs(n)) + ABSOLUTE_SHARE * size
    size: the RMS of the gradient, by which what cancels is measured
    """

    backprop: Array
    numeric: Array
    uncertainty: Array
    asymmetry: Array
    excess: Array
    kink: Mask
    small: Mask
    size: float

    @property
    def lost(self) -> bool:
        """Whether there are elements to judge and none can be told from zero."""
        left = ~self.kink
        return bool(left.any() and self.small[left].all())

    @property
    def flat(self) -> Mask:
        """Elements at which both sides are exactly zero."""
        flat: Mask = (self.backprop == 0) & (self.numeric == 0)
        return flat

    @property
    def not_finite(self) -> Mask:
        """Elements where either side is NaN or infinite."""
        return ~np.isfinite(self.backprop) | ~np.isfinite(self.numeric)


def rms(values: Array) -> float:
    """The root of the mean square of the finite values; 0 where there are none."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def compare(backprop: Array, derivative: Derivative, size: float = 0.0) -> Judged:
    """Classify and compare every element; both arguments are flat and of the same length.

    size: the RMS that the gradient has with another cotangent; a gradient that cancels to nothing with this one (that
        of soft_max with ones) is rounded like one that does not
    """
    numeric, uncertainty = derivative.value, derivative.uncertainty
    finite = np.isfinite(numeric)
    size = max(size, rms(numeric))
    sizes = np.maximum(np.abs(numeric), size)
    bend = np.maximum(derivative.gap, derivative.jump / 2.0)
    kink = finite & (bend > KINK_SHARE * sizes + NOISE_SLACK * derivative.rounding)
    with np.errstate(invalid="ignore"):
        difference = np.abs(backprop - numeric)
        scale = np.maximum(np.abs(backprop), np.abs(numeric)) + ABSOLUTE_SHARE * size
        # At a kink any slope between those on both sides is right; the bend is how far they are apart.
        # Below what counts as one, so much of the jump as is no rounding says the same.
        bend = np.where(kink, bend, np.maximum(derivative.jump / 2.0 - NOISE_SLACK * derivative.rounding, 0.0))
        allowed = of_the_worst(numeric.size) * uncertainty + KINK_SLACK * bend
        beyond = np.maximum(difference - allowed, 0.0)
        excess = np.divide(beyond, scale, out=np.where(beyond > 0, np.inf, 0.0), where=scale > 0)
        unresolved = (np.abs(numeric) < RESOLVED * uncertainty) & (uncertainty > 0)
        # A number and no number of 1e-40 are as far apart as can be, relatively.
        largest = np.maximum(np.abs(backprop), np.abs(numeric))
        small = finite & ~kink & (unresolved | ((largest > 0) & (largest < NEGLIGIBLE * size)))
    return Judged(backprop, numeric, uncertainty, asymmetry(backprop, numeric), excess, kink, small, size)


def of_the_worst(count: int) -> float:
    """By how much the error of the worst of `count` elements may exceed the uncertainty of one.

    That bounds SIGMAS standard deviations; of count normal errors none is beyond sqrt(2 ln(count / CHANCE)) of them but
    with the probability CHANCE (Bonferroni's bound, and exp(-z^2 / 2) for the normal tail).
    """
    return max(1.0, math.sqrt(2.0 * math.log(max(count, 1) / CHANCE)) / SIGMAS)


def asymmetry(a: Array, n: Array) -> Array:
    """abs(a - n) / (abs(a) + abs(n)), 0 where both are exactly 0, NaN where either is not finite."""
    total = np.abs(a) + np.abs(n)
    with np.errstate(invalid="ignore"):
        result: Array = np.divide(np.abs(a - n), total, out=np.zeros_like(total), where=total != 0)
    result[~np.isfinite(a) | ~np.isfinite(n)] = np.nan
    return result


def mean_asymmetry(judged: list[Judged]) -> tuple[float, float]:
    """The MAA over the elements that could be judged relatively, and what of it may be due to the error of n.

    NaN if there is no such element or one is NaN.
    """
    chosen = [(j, ~j.kink & ~j.small) for j in judged]
    values = np.concatenate([j.asymmetry[keep] for j, keep in chosen])
    if not values.size:
        return float("nan"), 0.0
    sizes = np.concatenate([np.abs(j.backprop[keep]) + np.abs(j.numeric[keep]) for j, keep in chosen])
    errors = np.concatenate([j.uncertainty[keep] for j, keep in chosen])
    own = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
    return float(np.mean(values)), float(np.mean(own[np.isfinite(own)])) if np.isfinite(own).any() else 0.0


def relative_l2(judged: Judged) -> float:
    """norm(a - n) / norm(n) over the elements without a kink; 0 for 0/0, NaN where anything is NaN."""
    keep = ~judged.kink
    with np.errstate(invalid="ignore"):
        error = float(np.linalg.norm(judged.backprop[keep] - judged.numeric[keep]))
    size = _norm(judged)
    if size == 0:
        return 0.0 if error == 0 else float("inf")
    return error / size


def relative_uncertainty(judged: Judged) -> float:
    """norm(uncertainty) / norm(n) over the elements without a kink: the error that `relative_l2` may owe to n."""
    size = _norm(judged)
    return float(np.linalg.norm(judged.uncertainty[~judged.kink])) / size if size else 0.0


def _norm(judged: Judged) -> float:
    """The norm of n without kinks, or that of a gradient of its size."""
    keep = ~judged.kink
    return max(float(np.linalg.norm(judged.numeric[keep])), judged.size * float(np.sqrt(np.count_nonzero(keep))))


def cosine(judged: Judged) -> float:
    """The cosine of the angle between both gradients; NaN where either is zero or not finite."""
    keep = ~judged.kink
    a, n = judged.backprop[keep], judged.numeric[keep]
    with np.errstate(invalid="ignore"):
        norms = float(np.linalg.norm(a) * np.linalg.norm(n))
        return float(a @ n) / norms if norms else float("nan")
