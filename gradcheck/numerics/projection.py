"""What a change of the outputs means for <v, y>: summed by the element that each output belongs to.

The same change is held against several cotangents at once; outputs are differenced in float64, so that what did
not change cancels exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.numerics.quantiles import quantile
from gradcheck.numerics.structure import Indices, Mask

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float32).eps)
#: The error of 999 normal deviates in 1,000 is below so many of its standard deviations.
SIGMAS = 3.5
_FLT_MAX = float(np.finfo(np.float32).max)
#: Where fewer outputs change than this share, and there are more than `_SMALL`, they are picked out first.
_SPARSE = 0.1
_SMALL = 2**15
#: Rows longer than this are quicker one by one than together, where an index as large as all of them is made.
_WIDE = 2**12


@dataclass(frozen=True)
class Output:
    """The undisturbed output, the cotangents, and the weights with which the outputs' roundings count.

    base: (outputs,)
    cotangents, weights: (cotangents, outputs)
    noise: (samples, outputs), samples of the rounding error of the outputs, where it was measured
    """

    base: Array
    cotangents: Array
    weights: Array
    noise: Array | None = None

    @staticmethod
    def of(y: Array, cotangents: Array, eps: float = _EPS) -> "Output":
        """From y (any shape) and one or several v: weights v^2 eps^2 (y^2 + mean y^2) for each output."""
        flat = y.ravel()
        v = cotangents.reshape(-1, flat.size) if flat.size else np.zeros((1, 0))
        # -FLT_MAX is what a maximum over nothing gives: a kind of infinity.
        finite = np.where(np.abs(flat) < _FLT_MAX, flat, 0.0)
        level = finite**2 + np.mean(finite**2) if flat.size else finite
        return Output(flat, v, v**2 * eps**2 * level)

    @cached_property
    def base32(self) -> NDArray[np.float32]:
        """The base output in float32, in which most outputs come: comparing within one type is quicker."""
        return self.base.astype(np.float32)

    @cached_property
    def all_finite(self) -> bool:
        """Whether no output is infinite or NaN at the outset."""
        return bool(np.isfinite(self.base).all())


@dataclass(frozen=True)
class Projection:
    """Changes of an output, projected onto its cotangents and given to the elements that were moved.

    owner: (outputs,) the column whose element an output depends on, `together` for none; None where a single
        element, or all of them as one, is moved
    together: elements that are moved at a time
    """

    output: Output
    owner: Indices | None
    together: int

    def changed(self, y: NDArray[Any]) -> Mask:
        """Which outputs differ from the undisturbed ones. Equal ones on both sides of x may well have changed."""
        mask: Mask = y != (self.output.base32 if y.dtype == np.float32 else self.output.base)
        return mask

    def changes(self, y: NDArray[Any], changed: Mask) -> Array:
        """<v, y - base> for each row of y, cotangent and column: (rows, cotangents, together).

        changed: what `changed` says of y
        """
        if self._few(changed):
            return self._each(changed, lambda row, at: y[row, at] - self.output.base[at], self.output.cotangents)
        if self.output.all_finite:
            return self._sums(y - self.output.base, self.output.cotangents)
        # Equal infinities did not change, though their difference is no number.
        difference = np.zeros(y.shape)
        np.subtract(y, self.output.base, out=difference, where=changed)
        return self._sums(difference, self.output.cotangents)

    def rounding(self, changed: Mask) -> Array:
        """The variance that the rounding of the outputs that changed gives: (rows, cotangents, together)."""
        # What changed nothing may have changed an output by less than its last place.
        return np.maximum(self._variance(changed), self._least_weights)

    def _variance(self, changed: Mask) -> Array:
        if changed.all():
            return self._noisy(np.broadcast_to(self._all_weights, (len(changed), *self._all_weights.shape[1:])))
        if self._few(changed):
            return self._noisy(self._each(changed, lambda _, at: np.ones(at.size), self.output.weights))
        return self._noisy(self._sums(changed.astype(np.float64), self.output.weights))

    def _noisy(self, variance: Array) -> Array:
        """The variances by as much larger as the measured noise is."""
        return variance * self._excess_noise[None, :, None]

    @cached_property
    def _excess_noise(self) -> Array:
        """The variance of the measured noise in units of that which the weights expect, at least 1: (cotangents,).

        It is looked at output by output, and column by column, where errors that outputs share (the sum by which all of
        a soft_max is divided) add up and do not average out.
        """
        output = self.output
        factor = np.ones(len(output.cotangents))
        if output.noise is None:
            return factor
        columns = self._sums(output.noise, output.cotangents)
        for k, v in enumerate(output.cotangents):
            single = _typical(np.mean(output.noise**2, axis=0) * v**2, output.weights[k])
            shared = _typical(np.mean(columns[:, k] ** 2, axis=0), self._all_weights[0, k])
            factor[k] = max(1.0, SIGMAS**2 * max(single, shared))
        return factor

    @cached_property
    def _least_weights(self) -> Array:
        """The variance of a single output of each column: (1, cotangents, together).

        A column that has none may still have changed any output by less than its last place.
        """
        counts = self._sums(np.ones((1, self.output.base.size)), np.ones_like(self.output.cotangents))
        least = np.divide(self._all_weights, counts, out=np.full_like(counts, np.inf), where=counts > 0)
        smallest = least.min(axis=2, keepdims=True, initial=np.inf)
        least = np.where(counts > 0, least, smallest)
        return np.where(np.isfinite(least), least, 0.0)

    @cached_property
    def _all_weights(self) -> Array:
        return self._sums(np.ones((1, self.output.base.size)), self.output.weights)

    @cached_property
    def _runs(self) -> Indices | None:
        """The column of each run, where runs of one length share theirs and no column has two; else None."""
        owner, runs = self.owner, self.together
        if owner is None or not runs or owner.size % runs:
            return None
        blocks = owner.reshape(runs, -1)
        columns = blocks[:, 0]
        regular = bool((blocks == columns[:, None]).all()) and int(columns.max(initial=0)) < self.together
        return columns if regular and np.bincount(columns).max() == 1 else None

    @staticmethod
    def _few(changed: Mask) -> bool:
        """Whether it pays to look for the outputs that changed."""
        return changed.size > _SMALL and int(np.count_nonzero(changed)) < _SPARSE * changed.size

    def _sums(self, difference: Array, factors: Array) -> Array:
        """The sum of difference * factor over the outputs of each column: (rows, factors, together)."""
        rows = len(difference)
        if self.owner is None:
            whole: Array = (difference @ factors.T)[:, :, None]
            return whole
        result = np.zeros((rows, len(factors), self.together))
        for index, factor in enumerate(factors):
            if self._runs is not None:
                runs, of = difference.reshape(rows, self.together, -1), factor.reshape(self.together, -1)
                result[:, index, self._runs] = np.einsum("nrl,rl->nr", runs, of)
            else:
                result[:, index] = _binned(self.owner, difference * factor, self.together)
        return result

    def _each(self, changed: Mask, difference: Callable[[int, Indices], Array], factors: Array) -> Array:
        """The same, row by row, for the outputs that changed alone."""
        result = np.zeros((len(changed), len(factors), self.together))
        for row, moved in enumerate(changed):
            at = np.flatnonzero(moved)
            moves = difference(row, at).astype(np.float64)
            if self.owner is None:
                result[row, :, 0] = factors[:, at] @ moves
                continue
            for index, factor in enumerate(factors):
                result[row, index] = _binned(self.owner[at], (moves * factor[at])[None], self.together)[0]
        return result


def _typical(seen: Array, expected: Array) -> float:
    """The mean of seen / expected, from which single large ones are kept out."""
    ratio = np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 0)
    return float(np.mean(np.minimum(ratio, 4.0 * quantile(ratio, 0.9)))) if ratio.size else 0.0


def _binned(owner: Indices, values: Array, together: int) -> Array:
    """The sums of each row's values by owner; what belongs to nobody is left out."""
    rows, width = len(values), together + 1
    if owner.size > _WIDE:
        sums = np.array([np.bincount(owner, row, width) for row in values])
    else:
        index = (owner + width * np.arange(rows)[:, None]).ravel()
        sums = np.bincount(index, values.ravel(), rows * width).reshape(rows, width)
    # Of nothing bincount gives whole numbers.
    return sums[:, :together].astype(np.float64, copy=False)
