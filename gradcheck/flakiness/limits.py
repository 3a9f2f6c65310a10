"""Limits for a failure rate, from how a metric is distributed over the seeds and the cases of an op."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradcheck.flakiness.tails import Quantile, fit_tail, upper_quantile
from gradcheck.model.flakiness import Basis, Suggestion
from gradcheck.model.result import Result

#: Fewer seeds say nothing of a tail.
FEWEST_SEEDS = 20

#: One rounding of float32, relative; what a handful of operations makes of it is no error.
_ROUNDING = 8 * 2.0**-24
#: Mode -> metric -> the limit below which none is proposed: rounding, its square where squares are measured. The share
#: of kinks depends on where values fall, not on rounding: below a per cent it says nothing.
FLOORS: dict[str, dict[str, float]] = {
    "grad": {"maa": _ROUNDING, "element": _ROUNDING, "rel_l2": _ROUNDING, "kinks": 0.01},
    "eval": {"nmse": _ROUNDING**2, "element": _ROUNDING},
}
#: A case stands out where its largest value is so many times the limit that would do for the others.
_STANDS_OUT = 2.0
#: If more than one in so many stand out, none does.
_OUTSTANDING_SHARE = 4

Values = dict[str, list[float]]


@dataclass
class _Group:
    """The cases of an op that have one limit of a metric: the values that are numbers, by case."""

    mode: str
    target: str
    op: str
    metric: str
    limit: float
    values: Values = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)


def suggest(results: Sequence[Result], rate: float) -> Iterator[Suggestion]:
    """Limits that are exceeded at `rate`, for each metric of each op: for its cases, and for one that stands out.

    Values of failed runs count as well: a distribution without its tail would make limits too tight. So a larger
    limit is an answer only where every failure has been looked into.
    """
    for group in _groups(results):
        rest, outstanding = _split(group.values, rate)
        yield _suggestion(group, rest, rate, "")
        for case_id, values in outstanding.items():
            yield _suggestion(group, {case_id: values}, rate, case_id)


def _groups(results: Sequence[Result]) -> list[_Group]:
    groups: dict[tuple[str, str, str, float], _Group] = {}
    for result in results:
        trials = result.outcome.trials
        if trials is None:
            continue
        for at, (metric, limit) in enumerate(trials.measures):
            numbers = [trial.values[at] for trial in trials.runs if trial.values and math.isfinite(trial.values[at])]
            if limit is None or not numbers:
                continue
            key = (result.target, result.op, metric, limit)
            group = groups.setdefault(key, _Group(result.mode, *key))
            group.values[result.case_id] = numbers
            group.failed[result.case_id] = trials.failed
    return list(groups.values())


def _split(cases: Values, rate: float) -> tuple[Values, Values]:
    """The cases that one limit can serve, and those that stand out of them."""
    rest, outstanding = dict(cases), Values()
    while len(rest) > 1:
        largest = max(rest, key=lambda case_id: max(rest[case_id]))
        others = {case_id: values for case_id, values in rest.items() if case_id != largest}
        usual = upper_quantile(_pooled(others), rate).most
        if max(rest[largest]) <= _STANDS_OUT * usual or not usual:
            return rest, outstanding
        outstanding[largest] = rest[largest]
        rest = others
        if _OUTSTANDING_SHARE * len(outstanding) > max(len(cases), _OUTSTANDING_SHARE):
            return dict(cases), Values()
    return rest, outstanding


def _suggestion(group: _Group, cases: Mapping[str, list[float]], rate: float, case_id: str) -> Suggestion:
    values = _pooled(cases)
    largest = max(values)
    quantile = upper_quantile(values, rate)
    floor = FLOORS[group.mode].get(group.metric, 0.0)
    if quantile.most < floor:
        known = quantile.basis is not Basis.MAXIMUM
        quantile = Quantile(floor, floor, Basis.ROUNDING if known else Basis.MAXIMUM)
    tail = fit_tail(values)
    return Suggestion(
        target=group.target,
        op=group.op,
        case_id=case_id,
        metric=group.metric,
        limit=group.limit,
        proposed=round_up(quantile.most) if largest > 0 else None,
        likely=quantile.likely,
        basis=quantile.basis,
        samples=len(values),
        largest=largest,
        failed=sum(group.failed[name] for name in cases),
        exceedance=tail.exceedance(group.limit) if tail and group.limit > tail.threshold else None,
    )


def _pooled(cases: Mapping[str, list[float]]) -> list[float]:
    return [value for values in cases.values() for value in values]


def round_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten: a limit has no more digits than are known."""
    if value <= 0.0 or not math.isfinite(value):
        return value
    exponent = math.floor(math.log10(value))
    steps = (float(f"{digit}e{exponent + up}") for up in (-1, 0, 1) for digit in (1, 2, 5))
    return next(step for step in steps if step >= value)
