"""What many seeds say of a run: how often cases fail, how near they come to it, and which limits would do."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Margin:
    """The value of a metric that came nearest to its limit, or went farthest beyond it: where, and with which seed."""

    metric: str
    value: float
    limit: float
    of_limit: float
    case_id: str
    seed: int


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Failures among runs, a run being one case with one seed.

    op, case_id: of which runs; "" for those of all ops, of all cases of the op
    low, high: the exact (Clopper-Pearson) confidence interval of the rate
    margins: of each metric that has a limit, the one nearest to failing first
    """

    target: str
    op: str
    case_id: str
    cases: int
    runs: int
    failed: int
    low: float
    high: float
    margins: tuple[Margin, ...]

    @property
    def rate(self) -> float:
        """The share of the runs that failed."""
        return self.failed / self.runs if self.runs else 0.0


class Basis(StrEnum):
    """What a proposed limit rests on.

    SAMPLE: there are so many runs that the quantile is among them
    TAIL: the upper tail of the metric, fitted and extrapolated
    MAXIMUM: too few positive values for a fit, so that nothing is known but the largest one, which gets a factor
    ROUNDING: the quantile is no more than rounding, which no limit should forbid
    """

    SAMPLE = "sample"
    TAIL = "tail"
    MAXIMUM = "maximum"
    ROUNDING = "rounding"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A limit of one metric that would be exceeded at the rate asked for.

    case_id: the one case that stands out of its op; "" for all other cases of the op that have this limit now
    limit: the present one
    proposed: the one that would do, from the largest value that the quantile may well have; rounded up. None where
        no value was above zero, which says nothing of those that will be
    likely: the quantile itself, as far as it is known
    samples: finite values that were seen, the largest of them `largest`
    failed: runs of these cases that failed; they are among the values, and no reason to raise a limit
    exceedance: the rate at which the present limit is expected to be exceeded, an upper bound; None without a fit
    """

    target: str
    op: str
    case_id: str
    metric: str
    limit: float
    proposed: float | None
    likely: float
    basis: Basis
    samples: int
    largest: float
    failed: int
    exceedance: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the present limit is exceeded no more often than asked, as far as can be told."""
        return self.proposed is not None and self.proposed <= self.limit

    @property
    def too_tight(self) -> bool:
        """Whether it is probably exceeded more often. Where neither is so, more seeds would tell."""
        return self.likely > self.limit


@dataclass(frozen=True, slots=True)
class Flakiness:
    """The trials of a run, summed up: by case, by op, and in all, target by target.

    confidence: of every interval
    known: cases that fail as known; they are in none of the numbers
    target_rate: the failure rate that `suggestions` are made for; None where none were asked for
    """

    confidence: float
    cases: tuple[FailureRate, ...]
    ops: tuple[FailureRate, ...]
    totals: tuple[FailureRate, ...]
    known: int = 0
    target_rate: float | None = None
    suggestions: tuple[Suggestion, ...] = ()
