"""Numeric gradients from forward evaluations: central differences at two steps, extrapolated, with error bars.

For one element x of a param and a cotangent v, with y(x) the whole output,

    D(h) = <v, y(x+h) - y(x-h)> / (x+h - (x-h))         the x that were really stored
    R    = (4 D(h/2) - D(h)) / 3                        Richardson's extrapolation, error O(h^4)

(Burden & Faires, Numerical Analysis, section 4.2). Outputs are differenced in float64, so what did not change
cancels exactly. The uncertainty of R is the truncation that the two steps show, abs(D(h/2) - D(h)) / 3, plus
the rounding of y, taken as independent errors of one unit in the last place of every output that changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: (flat elements, their x) -> outputs, one row for each.
Evaluate = Callable[[NDArray[np.int64], NDArray[np.float32]], NDArray[np.float32]]

#: The first step in units of the size of x: near the optimum eps^(1/5) of a fourth-order rule in float32.
RELATIVE_STEP = 2.0**-5
#: Steps that follow where the first leaves an element undecided: across a kink, or under the rounding of y.
LADDER = (1.0, 2.0**-4, 2.0**3)
#: An element is decided when its uncertainty is below this share of the gradient's size.
DECIDED = 2.0**-10
_EPS = float(np.finfo(np.float32).eps)
_FLT_MAX = float(np.finfo(np.float32).max)
#: Rows in which fewer outputs change than this share are differenced sparsely.
_SPARSE = 0.1


@dataclass(frozen=True)
class Derivative:
    """J^T v at some elements, with what its error is made of.

    gap: the disagreement of the two steps, abs(D(h) - D(h/2))
    rounding: the part of the error that is due to the rounding of y
    evaluations: forward evaluations spent
    """

    value: Array
    gap: Array
    rounding: Array
    evaluations: int

    @property
    def uncertainty(self) -> Array:
        """Truncation and rounding together: a bound that the true error should keep."""
        return self.gap / 3.0 + self.rounding


@dataclass(frozen=True)
class Output:
    """What differencing needs to know of the undisturbed output: the cotangent and the rounding weights."""

    cotangent: Array
    weights: Array = field(repr=False)

    @staticmethod
    def of(y: Array, cotangent: Array, eps: float = _EPS) -> "Output":
        """From the base output y (any shape) and v: weights v^2 (eps)^2 (y^2 + mean y^2) for each output."""
        flat, v = y.ravel(), cotangent.ravel()
        # -FLT_MAX is what a maximum over nothing gives: a kind of infinity.
        finite = np.where(np.abs(flat) < _FLT_MAX, flat, 0.0)
        level = finite**2 + np.mean(finite**2) if flat.size else finite
        return Output(v, v**2 * eps**2 * level)


def typical_step(x: NDArray[np.float32], fixed: float | None) -> float:
    """The first step h for a param: a case's own, or `RELATIVE_STEP` of the param's size (at most of 1)."""
    if fixed is not None:
        return fixed
    size = float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if x.size else 1.0
    return RELATIVE_STEP * min(1.0, size) if size > 0 else RELATIVE_STEP


def differentiate(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: NDArray[np.int64],
    output: Output,
    *,
    step: float,
    per_call: int,
    ladder: tuple[float, ...] = LADDER,
) -> Derivative:
    """The numeric gradient at `elements` of the flat param `x`.

    per_call: elements for each call of `evaluate`; each takes four evaluations
    Elements that the first step leaves undecided are tried with the other steps of the ladder; the one with
    the least uncertainty stays. Raises ValueError where a step does not change the stored x.
    """
    best = first = _at_step(evaluate, x, elements, output, step * ladder[0], per_call)
    for factor in ladder[1:]:
        size = float(np.sqrt(np.nanmean(best.value**2))) if best.value.size else 0.0
        wanted = DECIDED * np.maximum(np.abs(best.value), size)
        open_ = np.flatnonzero(~(best.uncertainty <= wanted))
        if open_.size == 0:
            break
        retry = _at_step(evaluate, x, elements[open_], output, step * factor, per_call)
        # A step too small to show in any output has the rounding of those that a larger one moves.
        least = first.rounding[open_] / factor
        retry = replace(retry, rounding=np.maximum(retry.rounding, least))
        best = _merge(best, retry, open_)
    return best


def _merge(best: Derivative, retry: Derivative, where: NDArray[np.int64]) -> Derivative:
    better = ~(retry.uncertainty >= best.uncertainty[where])
    columns = {}
    for name in ("value", "gap", "rounding"):
        column = getattr(best, name).copy()
        column[where[better]] = getattr(retry, name)[better]
        columns[name] = column
    return Derivative(evaluations=best.evaluations + retry.evaluations, **columns)


def _at_step(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: NDArray[np.int64],
    output: Output,
    step: float,
    per_call: int,
) -> Derivative:
    parts = [
        _block(evaluate, x, elements[start : start + per_call], output, step)
        for start in range(0, elements.size, per_call)
    ]
    if not parts:
        empty = np.zeros(0)
        return Derivative(empty, empty, empty, 0)
    value, gap, rounding = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Derivative(value, gap, rounding, 4 * elements.size)


def _block(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: NDArray[np.int64],
    output: Output,
    step: float,
) -> tuple[Array, Array, Array]:
    n = elements.size
    base = x[elements].astype(np.float64)
    moved = np.concatenate([base + step, base - step, base + step / 2, base - step / 2]).astype(np.float32)
    stored = moved.astype(np.float64)
    wide, narrow = stored[:n] - stored[n : 2 * n], stored[2 * n : 3 * n] - stored[3 * n :]
    if not (wide > 0).all() or not (narrow > 0).all():
        at = int(np.argmin(narrow))
        raise ValueError(f"a step of {step:.3g} does not change the stored x = {base[at]:.9g}")
    y = evaluate(np.tile(elements, 4), moved)
    d_wide, variance = _project(y[:n], y[n : 2 * n], output, weigh=True)
    d_narrow, _ = _project(y[2 * n : 3 * n], y[3 * n :], output, weigh=False)
    d_wide /= wide
    d_narrow /= narrow
    # Both evaluations round; Richardson weighs the narrow difference by 4/3.
    rounding = np.sqrt(2.0 * variance) / narrow * (4.0 / 3.0)
    return (4.0 * d_narrow - d_wide) / 3.0, np.abs(d_wide - d_narrow), rounding


def _project(
    plus: NDArray[np.float32], minus: NDArray[np.float32], output: Output, *, weigh: bool
) -> tuple[Array, Array]:
    """<v, plus - minus> for each row, and the sum of the rounding weights of the outputs that changed."""
    rows, size = plus.shape
    changed = plus != minus
    count = int(np.count_nonzero(changed))
    if count < _SPARSE * rows * size:
        flat = np.flatnonzero(changed)
        row, column = np.divmod(flat, size)
        difference = plus[row, column].astype(np.float64) - minus[row, column]
        dots = np.asarray(np.bincount(row, difference * output.cotangent[column], rows), dtype=np.float64)
        if not weigh:
            return dots, np.zeros(rows)
        return dots, np.asarray(np.bincount(row, output.weights[column], rows), dtype=np.float64)
    # Equal infinities did not change; their difference would be NaN.
    full = np.zeros((rows, size))
    np.subtract(plus, minus, out=full, where=changed, dtype=np.float64)
    weights = changed @ output.weights if weigh else np.zeros(rows)
    return full @ output.cotangent, weights
