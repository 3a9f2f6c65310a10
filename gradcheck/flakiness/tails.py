"""The upper tail of a metric: how large it gets once in so many runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradcheck.model.flakiness import Basis

#: Values above the threshold that a fit needs at least.
FEWEST_ABOVE = 10
#: Values that a fit needs at least, so that those above the threshold are a tail.
FEWEST = 5 * FEWEST_ABOVE
#: Where there are too few values for a fit, the largest and this factor are all that can be said.
BEYOND_LARGEST = 10.0
#: The normal quantile for an upper bound that holds in 95 of 100 fits.
_UPPER = 1.645


@dataclass(frozen=True, slots=True)
class Tail:
    """The fitted upper tail of `samples` values: `above` of them lie above `threshold`.

    Above the threshold u the share of the values beyond x falls as (x / u)^(-1 / index): log(x) has an exponential
    tail, and x one of Pareto's type. A lighter tail, as that of a normal or log-normal value, falls faster still far
    out, so that quantiles err on the large side.
    """

    threshold: float
    index: float
    above: int
    samples: int

    @property
    def upper_index(self) -> float:
        """An upper bound of the index: the estimate is asymptotically normal with the deviation index / sqrt(above).

        Source: P. Hall, "On some simple estimates of an exponent of regular variation", Journal of the Royal
        Statistical Society B 44 (1982), 37-42.
        """
        return self.index * (1.0 + _UPPER / math.sqrt(self.above))

    def quantile(self, rate: float, index: float) -> float:
        """The value that is exceeded at `rate`, with the fitted index or its upper bound.

        Source: I. Weissman, "Estimation of parameters and large quantiles based on the k largest observations",
        Journal of the American Statistical Association 73 (1978), 812-815.
        """
        return self.threshold * math.pow(self.above / (self.samples * rate), index)

    def exceedance(self, value: float) -> float:
        """The rate at which `value`, which is not below the threshold, is exceeded, with the upper index."""
        return self.above / self.samples * math.pow(value / self.threshold, -1.0 / self.upper_index)


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value that is exceeded at some rate: the likely one, the largest that it may well be, and from what."""

    likely: float
    most: float
    basis: Basis


def fit_tail(values: Sequence[float]) -> Tail | None:
    """The tail of values, or None where they are too few, or the largest ones zero or all alike.

    Peaks over a threshold, the threshold being the largest value but k: k is the root of the number of values, so that
    it grows with them and yet becomes a smaller and smaller share. The index is the mean of log(x / threshold).

    Source: B. M. Hill, "A simple general approach to inference about the tail of a distribution", Annals of Statistics
    3 (1975), 1163-1174.
    """
    if len(values) < FEWEST:
        return None
    ordered = sorted(values, reverse=True)
    above = max(FEWEST_ABOVE, math.isqrt(len(ordered)))
    threshold = ordered[above]
    if threshold <= 0.0 or ordered[0] == threshold:
        return None
    index = math.fsum(math.log(value / threshold) for value in ordered[:above]) / above
    return Tail(threshold, index, above, len(ordered))


def upper_quantile(values: Sequence[float], rate: float) -> Quantile:
    """The value that is exceeded at `rate`. At least one value must be there."""
    tail = fit_tail(values)
    expected = rate * len(values)
    if expected >= (tail.above if tail else FEWEST_ABOVE):
        among = sorted(values, reverse=True)[int(expected)]
        return Quantile(among, among, Basis.SAMPLE)
    largest = max(values)
    if tail is None:
        return Quantile(largest, largest * BEYOND_LARGEST, Basis.MAXIMUM)
    # Where less than one of the values should exceed it, none of them may.
    least = largest if expected < 1.0 else 0.0
    likely, most = (max(tail.quantile(rate, index), least) for index in (tail.index, tail.upper_index))
    return Quantile(likely, most, Basis.TAIL)
