"""A case with many seeds: a mode is asked once for each of them, and the answers become one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.model.trial import Trial, Trials, of_limit

#: What a mode makes of a case with one seed; what it raises is an outcome too.
Attempt = Callable[[int], Outcome]
#: Is told of the seed that comes next and of all that was found so far, so that a death has a seed.
Tell = Callable[[int, "Tally"], None]

#: Endings from the worst to the best: the one that comes first is the case's.
_WORST_FIRST = (Status.CRASH, Status.TIMEOUT, Status.ERROR, Status.FAIL, Status.VACUOUS, Status.PASS)


@dataclass
class Tally:
    """The trials of a case so far, and the worst outcome among them."""

    measures: tuple[tuple[str, float | None], ...] = ()
    runs: list[Trial] = field(default_factory=list)
    worst: Outcome | None = None
    worst_seed: int = 0

    def add(self, seed: int, outcome: Outcome) -> None:
        """Take in what a seed gave. Of equally bad ones the first that came nearest to its limits is the worst."""
        if not self.measures:
            self.measures = tuple((metric.name, metric.limit) for metric in outcome.metrics)
        values = {metric.name: metric.beyond for metric in outcome.metrics}
        known = tuple(values.get(name, math.nan) for name, _ in self.measures) if values else ()
        self.runs.append(Trial(seed, outcome.status, known, outcome.reason))
        if self.worst is None or _badness(outcome) > _badness(self.worst):
            self.worst, self.worst_seed = outcome, seed

    def outcome(self, note: str) -> Outcome | None:
        """The case's outcome: that of the worst seed, with the record of all; None where no seed gave a verdict."""
        if self.worst is None:
            return None
        trials = Trials(self.worst_seed, self.measures, tuple(self.runs))
        return replace(
            self.worst,
            reason=trials.explain(self.worst.reason) if self.worst.status.bad else self.worst.reason,
            counts=(*trials.counts, *self.worst.counts),
            notes=(*self.worst.notes, *((note,) if note else ())),
            trials=trials,
        )


def over_seeds(attempt: Attempt, seeds: Sequence[int], tell: Tell = lambda _seed, _tally: None) -> Outcome:
    """Run a case with each seed and merge what comes out.

    A case that is not run at all (unsupported, skipped, no graph) is so with every seed: the first one ends it. So
    does a crash, after which nothing in the process can be trusted.
    """
    tally = Tally()
    for seed in seeds:
        tell(seed, tally)
        outcome = attempt(seed)
        if not outcome.status.ran or outcome.invalid_case:
            return tally.outcome(f"ended at seed {seed}: {outcome.status} {outcome.reason}".rstrip()) or outcome
        tally.add(seed, outcome)
        if outcome.status is Status.CRASH:
            break
    merged = tally.outcome("")
    if merged is None:
        raise ValueError("a case needs one seed at least")
    return merged


def _badness(outcome: Outcome) -> tuple[int, float]:
    """How bad an ending is: by its status, then by the share of the limit that its worst metric takes."""
    shares = [of_limit(metric.beyond, metric.limit) for metric in outcome.metrics if metric.limit is not None]
    measured = [share for share in shares if not math.isnan(share)]
    beyond_measure = outcome.status.bad and len(measured) < len(shares)
    return -_WORST_FIRST.index(outcome.status), math.inf if beyond_measure else max(measured, default=0.0)
