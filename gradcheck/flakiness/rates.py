"""From the trials of a run to rates and margins, by case, by op and in all."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gradcheck.flakiness.limits import suggest
from gradcheck.flakiness.proportions import clopper_pearson
from gradcheck.model.flakiness import FailureRate, Flakiness, Margin
from gradcheck.model.result import Result
from gradcheck.model.status import Status
from gradcheck.model.trial import of_limit

CONFIDENCE = 0.95


def assess(results: Sequence[Result], target_rate: float | None = None) -> Flakiness:
    """Sum up what many seeds gave.

    Cases that fail as known are counted and left out of everything: they would hide how well the others do.

    target_rate: the failure rate for which limits are proposed; None: none are
    """
    tried = [result for result in results if result.outcome.trials is not None]
    judged = [result for result in tried if result.status is not Status.XFAIL]
    cases = [_case(result) for result in judged]
    return Flakiness(
        confidence=CONFIDENCE,
        cases=tuple(cases),
        ops=tuple(_sums(cases, lambda case: (case.target, case.op))),
        totals=tuple(_sums(cases, lambda case: (case.target, ""))),
        known=len(tried) - len(judged),
        target_rate=target_rate,
        suggestions=() if target_rate is None else tuple(suggest(judged, target_rate)),
    )


def _case(result: Result) -> FailureRate:
    trials = result.outcome.trials
    assert trials is not None
    runs, failed = len(trials.runs), trials.failed
    low, high = clopper_pearson(failed, runs, CONFIDENCE)
    margins = _nearest(_margins(result))
    return FailureRate(result.target, result.op, result.case_id, 1, runs, failed, low, high, margins)


def _margins(result: Result) -> Iterator[Margin]:
    """Every value of every metric that has a limit. NaN is no measure: a failure that it makes is counted as one."""
    trials = result.outcome.trials
    assert trials is not None
    for trial in trials.runs:
        for (metric, limit), value in zip(trials.measures, trial.values, strict=False):
            if limit is not None and not math.isnan(value):
                yield Margin(metric, value, limit, of_limit(value, limit), result.case_id, trial.seed)


def _nearest(margins: Iterable[Margin]) -> tuple[Margin, ...]:
    """Of each metric the margin nearest to failing, that metric first which is nearest."""
    nearest: dict[str, Margin] = {}
    for margin in margins:
        known = nearest.get(margin.metric)
        if known is None or margin.of_limit > known.of_limit:
            nearest[margin.metric] = margin
    return tuple(sorted(nearest.values(), key=lambda margin: -margin.of_limit))


def _sums(cases: Sequence[FailureRate], key: Callable[[FailureRate], tuple[str, str]]) -> Iterator[FailureRate]:
    groups: dict[tuple[str, str], list[FailureRate]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    for (target, op), group in groups.items():
        runs, failed = sum(case.runs for case in group), sum(case.failed for case in group)
        low, high = clopper_pearson(failed, runs, CONFIDENCE)
        margins = _nearest(margin for case in group for margin in case.margins)
        yield replace(
            group[0], target=target, op=op, case_id="", cases=len(group), runs=runs, failed=failed,
            low=low, high=high, margins=margins,
        )  # fmt: skip
