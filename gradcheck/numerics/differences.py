"""Numeric gradients from forward evaluations: central differences at two steps, extrapolated, with error bars.

For one element x of a param and a cotangent v, with y(x) the whole output,

    D(h) = <v, y(x+h) - y(x-h)> / (x+h - (x-h))         the x that were really stored
    R    = (4 D(h/2) - D(h)) / 3                        Richardson's extrapolation, error O(h^4)

(Burden & Faires, Numerical Analysis, section 4.2). Outputs are differenced in float64, so what did not change
cancels exactly. The uncertainty of R is the truncation that the two steps show, abs(D(h/2) - D(h)) / 3, plus
the rounding of y, taken as independent errors of one unit in the last place of every output that changed, and
at least as much as the noise that is seen.

A central difference does not see a kink right at x, since both steps agree there. The second difference does:

    S(h) = <v, y(x+h) - 2 y(x) + y(x-h)> / h      is of the order of h where y is smooth, so that
    2 S(h/2) - S(h)                               vanishes, and is the jump of the slope at a kink
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.numerics.structure import Evaluate, Indices, Moves

Array = NDArray[np.float64]

#: The first step in units of the size of x: near the optimum eps^(1/5) of a fourth-order rule in float32.
RELATIVE_STEP = 2.0**-5
#: Steps that follow where the first leaves an element undecided: across a kink, or under the rounding of y.
LADDER = (1.0, 2.0**-4, 2.0**3)
#: An element is decided when its uncertainty is below this share of the gradient's size.
DECIDED = 2.0**-10
_EPS = float(np.finfo(np.float32).eps)
_FLT_MAX = float(np.finfo(np.float32).max)
#: The noise of R in units of the lower quartile of the jump: independent normal errors e of y give R one of
#: 1.9 e/h and the jump one of 10 e/h, of whose magnitude the quartile is 0.32 parts; doubled to be a bound.
_NOISE = 1.2
#: Rows in which fewer outputs change than this share are differenced sparsely.
_SPARSE = 0.1


@dataclass(frozen=True)
class Derivative:
    """J^T v at some elements (in the order of the moves' rows), with what its error is made of.

    gap: the disagreement of the two steps, abs(D(h) - D(h/2))
    jump: the jump of the slope at x, abs(2 S(h/2) - S(h))
    rounding: the part of the error that is due to the rounding of y
    evaluations: forward evaluations spent
    """

    value: Array
    gap: Array
    jump: Array
    rounding: Array
    evaluations: int

    @property
    def uncertainty(self) -> Array:
        """Truncation and rounding together: a bound that the true error should keep."""
        return self.gap / 3.0 + self.rounding


@dataclass(frozen=True)
class Output:
    """The undisturbed output, the cotangent, and the weights with which the outputs' roundings count; all flat."""

    base: Array
    cotangent: Array
    weights: Array

    @staticmethod
    def of(y: Array, cotangent: Array, eps: float = _EPS) -> "Output":
        """From the base output y (any shape) and v: weights v^2 (eps)^2 (y^2 + mean y^2) for each output."""
        flat, v = y.ravel(), cotangent.ravel()
        # -FLT_MAX is what a maximum over nothing gives: a kind of infinity.
        finite = np.where(np.abs(flat) < _FLT_MAX, flat, 0.0)
        level = finite**2 + np.mean(finite**2) if flat.size else finite
        return Output(flat, v, v**2 * eps**2 * level)


def typical_step(x: NDArray[np.float32], fixed: float | None) -> float:
    """The first step h for a param: a case's own, or `RELATIVE_STEP` of the param's size (at most of 1)."""
    if fixed is not None:
        return fixed
    size = float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if x.size else 1.0
    return RELATIVE_STEP * min(1.0, size) if size > 0 else RELATIVE_STEP


def differentiate(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    moves: Moves,
    output: Output,
    *,
    step: float,
    per_call: int,
    ladder: tuple[float, ...] = LADDER,
) -> Derivative:
    """The numeric gradient at the elements of `moves` of the flat param `x`.

    per_call: moves for each call of `evaluate`; each takes four evaluations
    Elements that the first step leaves undecided are tried with the other steps of the ladder; the one with
    the least uncertainty stays. Raises ValueError where a step does not change the stored x.
    """
    best = first = _at_step(evaluate, x, moves, output, step * ladder[0], per_call)
    for factor in ladder[1:]:
        undecided = _undecided(best)
        if undecided.size == 0:
            break
        rows = np.unique(undecided // moves.together)
        again = Moves(moves.elements[rows], moves.owner)
        retry = _at_step(evaluate, x, again, output, step * factor, per_call)
        where = (rows[:, None] * moves.together + np.arange(moves.together)).ravel()
        # A step too small to show in any output has the rounding of those that a larger one moves.
        retry = replace(retry, rounding=np.maximum(retry.rounding, first.rounding[where] / factor))
        best = _merge(best, retry, where)
    return best


def confirm(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    moves: Moves,
    derivative: Derivative,
    output: Output,
    *,
    step: float,
    rng: Generator,
) -> bool:
    """Whether moving everything at once, each element by its own random amount, changes <v, y> as n says.

    It must, up to the uncertainties, where n is the whole gradient; it does not where elements that were moved
    together share an output after all. Takes four evaluations.
    """
    elements = moves.elements.ravel()
    amount = step * rng.choice([0.5, 1.0], x.size) * rng.choice([-1.0, 1.0], x.size)
    base = x[elements].astype(np.float64)
    moved = np.stack([base + f * amount[elements] for f in (1.0, -1.0, 0.5, -0.5)]).astype(np.float32)
    stored = moved.astype(np.float64)
    y = evaluate(np.tile(elements, (4, 1)), moved)
    change = _changes(y, output, None, 1)[:, 0]
    variance = _rounding_variance(y[:1] != y[1:2], output, None, 1)[0, 0]
    wide, narrow = (stored[plus] - stored[minus] for plus, minus in ((0, 1), (2, 3)))
    error_wide = change[0] - change[1] - float(derivative.value @ wide)
    error_narrow = change[2] - change[3] - float(derivative.value @ narrow)
    # The error of a central difference falls with the third power of the step, so Richardson takes 8 narrow ones.
    error = (8.0 * error_narrow - error_wide) / 6.0
    allowed = float(np.linalg.norm(derivative.uncertainty * narrow)) + 4.0 * np.sqrt(2.0 * variance)
    return bool(abs(error) <= 4.0 * allowed + DECIDED * float(np.linalg.norm(derivative.value * narrow)))


def _undecided(derivative: Derivative) -> Indices:
    finite = derivative.value[np.isfinite(derivative.value)]
    size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    wanted = DECIDED * np.maximum(np.abs(derivative.value), size)
    return np.flatnonzero(~(derivative.uncertainty <= wanted)).astype(np.int64)


def _merge(best: Derivative, retry: Derivative, where: Indices) -> Derivative:
    better = ~(retry.uncertainty >= best.uncertainty[where])
    columns = {}
    for name in ("value", "gap", "jump", "rounding"):
        column = getattr(best, name).copy()
        column[where[better]] = getattr(retry, name)[better]
        columns[name] = column
    return Derivative(evaluations=best.evaluations + retry.evaluations, **columns)


def _at_step(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    moves: Moves,
    output: Output,
    step: float,
    per_call: int,
) -> Derivative:
    rows = moves.elements
    parts = [
        _block(evaluate, x, rows[start : start + per_call], moves.owner, output, step)
        for start in range(0, len(rows), per_call)
        if rows.size
    ]
    if not parts:
        empty = np.zeros(0)
        return Derivative(empty, empty, empty, empty, 0)
    value, gap, jump, rounding = (np.concatenate(column, axis=0).ravel() for column in zip(*parts, strict=True))
    # Where y is smooth the jump is nothing but noise, also of what a kernel rounds on the way to y. The quartile
    # leaves out what is not smooth, up to three quarters of the elements.
    noise = _NOISE * float(np.quantile(jump, 0.25))
    return Derivative(value, gap, jump, np.maximum(rounding, noise), 4 * len(rows))


def _block(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: Indices,
    owner: Indices | None,
    output: Output,
    step: float,
) -> tuple[Array, Array, Array, Array]:
    n, together = elements.shape
    base = x[elements].astype(np.float64)
    moved = np.concatenate([base + step, base - step, base + step / 2, base - step / 2]).astype(np.float32)
    stored = moved.astype(np.float64)
    wide, narrow = stored[:n] - stored[n : 2 * n], stored[2 * n : 3 * n] - stored[3 * n :]
    if not (wide > 0).all() or not (narrow > 0).all():
        at = float(base.ravel()[int(np.argmin(narrow))])
        raise ValueError(f"a step of {step:.3g} does not change the stored x = {at:.9g}")
    y = evaluate(np.tile(elements, (4, 1)), moved)
    change = _changes(y, output, owner, together)
    d_wide = (change[:n] - change[n : 2 * n]) / wide
    d_narrow = (change[2 * n : 3 * n] - change[3 * n :]) / narrow
    s_wide = (change[:n] + change[n : 2 * n]) / (wide / 2.0)
    s_narrow = (change[2 * n : 3 * n] + change[3 * n :]) / (narrow / 2.0)
    # Both evaluations round; Richardson weighs the narrow difference by 4/3.
    variance = _rounding_variance(y[:n] != y[n : 2 * n], output, owner, together)
    rounding = np.sqrt(2.0 * variance) / narrow * (4.0 / 3.0)
    value = (4.0 * d_narrow - d_wide) / 3.0
    return value, np.abs(d_wide - d_narrow), np.abs(2.0 * s_narrow - s_wide), rounding


def _changes(y: NDArray[np.float32], output: Output, owner: Indices | None, together: int) -> Array:
    """<v, y - base> for each row and owner: (rows, together). Equal infinities did not change."""
    result = np.zeros((len(y), together))
    base32 = output.base.astype(np.float32)
    changed = y != base32
    if owner is None and np.count_nonzero(changed) >= _SPARSE * y.size:
        full = np.zeros(y.shape)
        np.subtract(y, base32, out=full, where=changed, dtype=np.float64)
        result[:, 0] = full @ output.cotangent
        return result
    for row, moved in enumerate(changed):
        at = np.flatnonzero(moved)
        of = at * 0 if owner is None else owner[at]
        difference = y[row, at].astype(np.float64) - output.base[at]
        result[row] = np.bincount(of, difference * output.cotangent[at], together + 1)[:together]
    return result


def _rounding_variance(changed: NDArray[np.bool_], output: Output, owner: Indices | None, together: int) -> Array:
    """The sum of the rounding weights of the outputs that changed, for each row and owner."""
    result = np.zeros((len(changed), together))
    for row, moved in enumerate(changed):
        at = np.flatnonzero(moved)
        of = at * 0 if owner is None else owner[at]
        result[row] = np.bincount(of, output.weights[at], together + 1)[:together]
    return result
