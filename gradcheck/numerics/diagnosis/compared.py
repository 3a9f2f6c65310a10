"""What a diagnosis is made from: the judged elements of a param, and tensors that backprop may have taken instead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gradcheck.numerics.gradient_metrics import ABSOLUTE_SHARE, rms

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: A hypothesis must hold for this share of the elements that it speaks of.
EXPLAINED = 0.99
#: An element speaks for a hypothesis when it tells it from the numeric gradient by this many tolerances.
_TELLING = 4.0
#: Elements that are looked at before all are, and the share of them that must agree to go on.
_SCREENED, _NOT_HOPELESS = 256, 0.9
#: Shares of the tolerance within which a hypothesis is tried.
_STRICTNESS = (1 / 16, 1.0)


@dataclass(frozen=True, eq=False)
class Tensor:
    """Something that lay at hand when the gradient was computed. words: "the cotangent", "the input b"..."""

    words: str
    values: Array


@dataclass(frozen=True, eq=False)
class Compared:
    """Backprop and numeric gradient of one param at the elements that count (kinks are none of them), all flat.

    shape: of the param, in NumPy's order
    elements: flat indices (C order of `shape`) of what follows, in any order; not all need be there
    rms: the size of the numeric gradient as a whole
    tolerance: relative error, beyond the uncertainty, up to which two values are the same
    gradient_shape: the shape of the gradient that backprop made, None for none
    """

    name: str
    shape: tuple[int, ...]
    elements: Indices
    backprop: Array
    numeric: Array
    uncertainty: Array
    rms: float
    tolerance: float
    gradient_shape: tuple[int, ...] | None

    @staticmethod
    def of(
        name: str,
        shape: tuple[int, ...],
        elements: Indices,
        values: tuple[Array, Array, Array],
        counts: Mask,
        *,
        tolerance: float,
        gradient_shape: tuple[int, ...] | None,
    ) -> "Compared":
        """From backprop, numeric gradient and uncertainty (`values`) at all elements, of which some count."""
        backprop, numeric, uncertainty = (column[counts] for column in values)
        size = rms(values[1])
        return Compared(name, shape, elements[counts], backprop, numeric, uncertainty, size, tolerance, gradient_shape)

    @cached_property
    def wrong(self) -> Mask:
        """Where backprop is not the numeric gradient."""
        return ~self.agrees(self.numeric, self.uncertainty)

    @cached_property
    def resolved(self) -> Mask:
        """Where the numeric gradient is told from zero well enough to divide by it."""
        return np.abs(self.numeric) > np.maximum(16.0 * self.uncertainty, ABSOLUTE_SHARE * self.rms)

    @cached_property
    def index(self) -> tuple[Indices, ...]:
        """The index of each element along every axis of `shape`."""
        return tuple(axis.astype(np.int64, copy=False) for axis in np.unravel_index(self.elements, self.shape))

    @property
    def axes(self) -> range:
        """The axes of `shape`; axis k is i(len - 1 - k) in ggml's order."""
        return range(len(self.shape))

    def along(self, axis: int) -> str:
        """The name of an axis in ggml's order: i0, i1..."""
        return f"i{len(self.shape) - 1 - axis}"

    def agrees(self, prediction: Array, uncertainty: Array, strictness: float = 1.0) -> Mask:
        """Where backprop is the prediction, within its uncertainty and a share of the tolerance; NaN is nothing."""
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = uncertainty + strictness * self.tolerance * self._size(prediction)
            result: Mask = np.abs(self.backprop - prediction) <= allowed
        return result

    def telling(self, prediction: Array, uncertainty: Array, strictness: float = 1.0) -> Mask:
        """Where a prediction is too far from the numeric gradient for backprop to agree with it by chance."""
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = uncertainty + _TELLING * strictness * self.tolerance * self._size(prediction)
            result: Mask = np.abs(prediction - self.numeric) > allowed
        return result

    def _size(self, prediction: Array) -> Array:
        size: Array = np.maximum(np.abs(self.backprop), np.abs(prediction)) + ABSOLUTE_SHARE * self.rms
        return size

    def subset(self, chosen: Mask | Indices) -> "Compared":
        """The same param at fewer elements."""
        return Compared(
            self.name,
            self.shape,
            self.elements[chosen],
            self.backprop[chosen],
            self.numeric[chosen],
            self.uncertainty[chosen],
            self.rms,
            self.tolerance,
            self.gradient_shape,
        )

    def at(self, source: Indices) -> tuple[Array, Array]:
        """Numeric gradient and uncertainty at flat elements; NaN where a source is negative or not judged."""
        order, places = self._sorted
        if not places.size:
            return np.full(source.shape, np.nan), np.full(source.shape, np.nan)
        if places.size == math.prod(self.shape):
            at = np.clip(source, 0, places.size - 1)
        else:
            at = np.minimum(np.searchsorted(places, source), places.size - 1)
        found = places[at] == source
        positions = order[at]
        return (
            np.where(found, self.numeric[positions], np.nan),
            np.where(found, self.uncertainty[positions], np.nan),
        )

    @cached_property
    def _sorted(self) -> tuple[Indices, Indices]:
        order = np.argsort(self.elements, kind="stable").astype(np.int64)
        return order, self.elements[order]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What backprop seems to be.

    words: a noun phrase that follows "backprop is", "looks like" or "may be"
    prediction, uncertainty: for every element; NaN where nothing is predicted
    fitted: how many numbers were taken from the data
    aside: what may have led to it, "" for nothing
    applies: the elements that it speaks of; None for all
    statement: whether the words follow "backprop" as they are, since they say no more than what is seen
    """

    words: str
    prediction: Array
    uncertainty: Array
    fitted: int = 0
    aside: str = ""
    statement: bool = False
    applies: Mask | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be explained: why the elements in `wrong` of `param` are wrong.

    others: the other params of the case; tensors: inputs, output, cotangent, as far as they are known
    """

    param: Compared
    wrong: Mask
    others: Sequence[Compared] = ()
    tensors: Sequence[Tensor] = ()

    def sample(self, count: int) -> Indices:
        """Positions of at most `count` wrong elements, the same at each call."""
        wrong = np.flatnonzero(self.wrong).astype(np.int64)
        if wrong.size <= count:
            return wrong
        # Not at equal distances, which would see one column alone.
        return np.sort(np.random.default_rng(0).choice(wrong, count, replace=False))

    def support(self, explanation: Explanation) -> int:
        """How many wrong elements speak for an explanation; 0 where too many speak against it."""
        prediction, uncertainty = explanation.prediction, explanation.uncertainty
        positions, few = self._few
        known = np.isfinite(prediction[positions])
        agrees = few.agrees(prediction[positions], uncertainty[positions])
        if known.any() and np.mean(agrees[known]) < _NOT_HOPELESS:
            return 0
        asked = np.flatnonzero(self.wrong & np.isfinite(prediction))
        param, prediction, uncertainty = self.param.subset(asked), prediction[asked], uncertainty[asked]
        # An error that is hardly larger than the tolerance can be told from none where the explanation is exact.
        for strictness in _STRICTNESS:
            agrees = param.agrees(prediction, uncertainty, strictness)
            if np.count_nonzero(agrees) >= EXPLAINED * asked.size:
                return int(np.count_nonzero(agrees & param.telling(prediction, uncertainty, strictness)))
        return 0

    @cached_property
    def _few(self) -> tuple[Indices, Compared]:
        positions = self.sample(_SCREENED)
        return positions, self.param.subset(positions)
