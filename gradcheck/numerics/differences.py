"""Numeric gradients from forward evaluations: central differences at two steps, extrapolated, with error bars.

For one element x of a param and a cotangent v, with y(x) the whole output,

    D(h) = <v, y(x+h) - y(x-h)> / (x+h - (x-h))         the x that were really stored
    R    = (4 D(h/2) - D(h)) / 3                        Richardson's extrapolation, error O(h^4)

(Burden & Faires, Numerical Analysis, section 4.2). The uncertainty of R is the truncation that the two steps show,
abs(D(h/2) - D(h)) / 3, plus the rounding of y, taken as independent errors of one unit in the last place of every
output that changed, and at least as much as the noise that is seen.

A central difference does not see a kink right at x, since both steps agree there. The second difference does:

    S(h) = <v, y(x+h) - 2 y(x) + y(x-h)> / h      is of the order of h where y is smooth, so that
    2 S(h/2) - S(h)                               vanishes, and is the jump of the slope at a kink

The step is that which suits the function at hand. Truncation grows with h^2 and rounding with 1/h; where the first
step leaves an element undecided, both are known for it, and A h^2 + B/h is least at h = (B / 2A)^(1/3) (Press et al.,
Numerical Recipes, section 5.7, for this balance). Elements that move together each have a step of their own.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradcheck.numerics.projection import Output, Projection
from gradcheck.numerics.quantiles import quantile
from gradcheck.numerics.structure import Evaluate, Indices, Moves

Array = NDArray[np.float64]

#: The first step in units of the size of x: near the optimum eps^(1/5) of a fourth-order rule in float32.
RELATIVE_STEP = 2.0**-5
#: How far later steps may be from the first; larger ones could leave the domain of the op.
LEAST_FACTOR, LARGEST_FACTOR = 2.0**-8, 2.0**3
#: Tries with a step of its own for an element that the first leaves undecided.
RETRIES = 3
#: An element is decided when its uncertainty is below this share of the gradient's size.
DECIDED = 2.0**-10
#: The same where there are many moves, of which each retry repeats most: what is below is no matter for the verdict.
#: The gap is three times the uncertainty at most, and must stay below the share at which it is taken for a kink.
DECIDED_OF_MANY = 2.0**-9
#: Of a step that is too large by an unknown amount, as across a kink, so much is taken at most.
_SHRINK = 2.0**-4
#: Steps are no smaller than this share of the element: below, the stored x moves by too few units.
_LEAST = 2.0**-16
#: The noise of R in units of the lower quartile of the jump: independent normal errors e of y give R one of
#: 1.9 e/h and the jump one of 10 e/h, of whose magnitude the quartile is 0.32 parts; doubled to be a bound.
_NOISE = 1.2


@dataclass(frozen=True)
class Derivative:
    """J^T v at some elements (in the order of the moves' rows), with what its error is made of.

    All arrays have the shape (cotangents, elements), or (elements,) for a single cotangent.
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

    def of(self, cotangent: int) -> "Derivative":
        """The part for one cotangent."""
        return Derivative(
            self.value[cotangent],
            self.gap[cotangent],
            self.jump[cotangent],
            self.rounding[cotangent],
            self.evaluations,
        )


#: From so many batches of moves on, one is made beforehand to find the step.
_PILOT = 4

_COLUMNS = ("value", "gap", "jump", "rounding")


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
    adapt: bool = True,
    largest: float = LARGEST_FACTOR,
) -> Derivative:
    """The numeric gradients, one for each cotangent, at the elements of `moves` of the flat param `x`.

    per_call: moves for each call of `evaluate`; each takes four evaluations
    adapt: whether elements that the first step leaves undecided are tried with others, up to `largest` times that; the
        one with the least uncertainty stays
    Raises ValueError where a step does not change the stored x.
    """
    projection = Projection(output, moves.owner, moves.together)
    stencil = _Stencil(evaluate, x, projection, per_call, _LEAST if adapt else 0.0, moves.named)
    many = len(moves.elements) >= _PILOT * per_call
    pilot = min(largest, _pilot(stencil, moves, step)) if adapt and many else 1.0
    best = first = last = _with_noise(stencil.at(moves.elements, np.full(moves.elements.shape, step * pilot)))
    factors = np.full(moves.elements.size, pilot)
    for _ in range(RETRIES if adapt else 0):
        wanted = _next_factors(best, last, factors, DECIDED_OF_MANY if many else DECIDED, largest)
        rows = np.unique(np.flatnonzero(wanted != factors) // moves.together)
        if rows.size == 0:
            break
        where = (rows[:, None] * moves.together + np.arange(moves.together)).ravel()
        factors = wanted
        retry = stencil.at(moves.elements[rows], step * factors[where].reshape(rows.size, -1))
        # A step too small to show in any output has the rounding of those that a larger one moves.
        floor = first.rounding[:, where] * pilot / factors[where]
        retry = replace(retry, rounding=np.maximum(retry.rounding, floor))
        last, best = _placed(last, retry, where), _merge(best, retry, where)
    return best


def _pilot(stencil: "_Stencil", moves: Moves, step: float) -> float:
    """By how much the first step is to be changed, as a few of many moves show."""
    rows = np.unique(np.linspace(0, len(moves.elements) - 1, stencil.per_call).astype(np.int64))
    elements = moves.elements[rows]
    seen = _with_noise(stencil.at(elements, np.full(elements.shape, step)))
    wanted = _next_factors(seen, seen, np.ones(elements.size), DECIDED, LARGEST_FACTOR)
    return float(np.median(wanted))


def _next_factors(best: Derivative, last: Derivative, factors: Array, share: float, largest: float) -> Array:
    """For each element the step that balances truncation and rounding, in units of the first; unchanged if decided."""
    undecided = _undecided(best, share)
    # Of several cotangents the one that is worst off decides.
    worst = np.argmax(np.where(undecided, last.uncertainty, -1.0), axis=0)[None, :]
    gap, rounding = (np.take_along_axis(column, worst, axis=0)[0] for column in (last.gap, last.rounding))
    # Below the rounding the gap is noise, and says no more than that the step may be larger.
    shrink = np.cbrt(1.5 * np.divide(rounding, gap, out=np.ones_like(gap), where=gap > rounding))
    change = np.where(gap > rounding, np.clip(shrink, _SHRINK, 1.0), LARGEST_FACTOR)
    change = np.where(np.isfinite(gap), change, _SHRINK)
    wanted = factors * np.exp2(np.round(np.log2(change)))
    wanted = np.clip(wanted, LEAST_FACTOR, largest)
    return np.where(undecided.any(axis=0), wanted, factors)


def _undecided(derivative: Derivative, share: float) -> NDArray[np.bool_]:
    finite = np.where(np.isfinite(derivative.value), derivative.value, 0.0)
    size = np.sqrt(np.mean(finite**2, axis=1, keepdims=True)) if finite.size else np.zeros((len(finite), 1))
    wanted = share * np.maximum(np.abs(derivative.value), size)
    return ~(derivative.uncertainty <= wanted)


def _with_noise(derivative: Derivative) -> Derivative:
    """The same with the noise that is seen as the least rounding, which no model of a kernel could tell.

    Where y is smooth the jump is nothing but noise, also of what a kernel rounds on the way to y. The quartile
    leaves out what is not smooth, up to three quarters of the elements.
    """
    if not derivative.jump.size:
        return derivative
    noise = _NOISE * quantile(derivative.jump, 0.25)
    return replace(derivative, rounding=np.maximum(derivative.rounding, noise))


def _placed(derivative: Derivative, retry: Derivative, where: Indices) -> Derivative:
    """The retry's columns in place of those `where`."""
    columns = {}
    for name in _COLUMNS:
        columns[name] = getattr(derivative, name).copy()
        columns[name][:, where] = getattr(retry, name)
    return Derivative(evaluations=derivative.evaluations + retry.evaluations, **columns)


def _merge(best: Derivative, retry: Derivative, where: Indices) -> Derivative:
    """Of both, for each element and cotangent, the one with the least uncertainty."""
    placed = _placed(best, retry, where)
    # A step that left the domain of the op gives no number, and no number is less than that.
    better = (placed.uncertainty < best.uncertainty) | ~np.isfinite(best.uncertainty)
    columns = {name: np.where(better, getattr(placed, name), getattr(best, name)) for name in _COLUMNS}
    return Derivative(evaluations=placed.evaluations, **columns)


@dataclass(frozen=True)
class _Stencil:
    """The four evaluations of a move, and what follows from them."""

    evaluate: Evaluate
    x: NDArray[np.float32]
    projection: Projection
    per_call: int
    least: float
    named: bool

    def at(self, elements: Indices, steps: Array) -> Derivative:
        """The derivative at rows of elements, each moved by its own step."""
        parts = [
            self._block(elements[start : start + self.per_call], steps[start : start + self.per_call])
            for start in range(0, len(elements), self.per_call)
            if elements.size
        ]
        if not parts:
            empty = np.zeros((len(self.projection.output.cotangents), 0))
            return Derivative(empty, empty, empty, empty, 0)
        value, gap, jump, rounding = (
            np.concatenate(column).transpose(1, 0, 2).reshape(column[0].shape[1], -1)
            for column in zip(*parts, strict=True)
        )
        return Derivative(value, gap, jump, rounding, 4 * len(elements))

    def _block(self, elements: Indices, step: Array) -> tuple[Array, Array, Array, Array]:
        n = len(elements)
        base = self.x[elements].astype(np.float64)
        step = np.maximum(step, self.least * np.abs(base))
        moved = np.concatenate([base + step, base - step, base + step / 2, base - step / 2]).astype(np.float32)
        stored = moved.astype(np.float64)
        wide, narrow = (stored[:n] - stored[n : 2 * n])[:, None], (stored[2 * n : 3 * n] - stored[3 * n :])[:, None]
        if not (wide > 0).all() or not (narrow > 0).all():
            at = int(np.argmin(narrow))
            raise ValueError(f"a step of {step.ravel()[at]:.3g} does not change the stored x = {base.ravel()[at]:.9g}")
        y = self.evaluate(np.tile(elements, (4, 1)) if self.named else None, moved)
        changed = self.projection.changed(y)
        change = self.projection.changes(y, changed)
        d_wide = (change[:n] - change[n : 2 * n]) / wide
        d_narrow = (change[2 * n : 3 * n] - change[3 * n :]) / narrow
        s_wide = (change[:n] + change[n : 2 * n]) / (wide / 2.0)
        s_narrow = (change[2 * n : 3 * n] + change[3 * n :]) / (narrow / 2.0)
        # Both evaluations round; Richardson weighs the narrow difference by 4/3.
        variance = self.projection.rounding(changed[:n] | changed[n : 2 * n])
        rounding = np.sqrt(2.0 * variance) / narrow * (4.0 / 3.0)
        value = (4.0 * d_narrow - d_wide) / 3.0
        return value, np.abs(d_wide - d_narrow), np.abs(2.0 * s_narrow - s_wide), rounding
