"""Which ops of ggml have cases, counted from the cases and from a choice of their graphs."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from gradcheck.model.case import Case
from gradcheck.model.coverage import OpCoverage
from gradcheck.model.result import Result

Cases = Sequence[Case]


def each_choice(cases: Iterable[Case]) -> list[Case]:
    """Of each family as many cases as it takes for every value of every variable to occur.

    Values decide what a graph is made of (a mask, an in-place twin, a view); their combinations, on the whole, do not.
    The criterion is each-choice coverage, of Ammann and Offutt, "Introduction to Software Testing".
    """
    seen: set[Hashable] = set()
    chosen = []
    for case in cases:
        choices = {(_family(case), choice) for choice in (None, *case.vars)}
        if not choices <= seen:
            seen |= choices
            chosen.append(case)
    return chosen


def worth_building(cases: Mapping[str, Cases]) -> list[Case]:
    """The cases whose graphs tell what ops occur: of grad, and of families that grad does not have.

    cases: by mode
    """
    first = list(cases["grad"])
    known = {_family(case) for case in first}
    others = (case for mode, found in cases.items() if mode != "grad" for case in found)
    return each_choice([*first, *(case for case in others if _family(case) not in known)])


def cover(ops: Sequence[str], cases: Mapping[str, Cases], built: Iterable[tuple[Case, Result]]) -> list[OpCoverage]:
    """A row for each op.

    ops: the names of the loaded ggml
    cases: those of grad, eval and support
    built: some of them with their forward and backward graphs, or with the reason why there are none
    """
    counts = {mode: Counter(case.op for case in found) for mode, found in cases.items()}
    counts["grad"] = Counter(case.op for case in cases["grad"] if case.params and not case.skip)
    where: dict[str, set[Hashable]] = defaultdict(set)
    tried: Counter[str] = Counter()
    made: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for case, result in built:
        for row in result.outcome.tensors:
            where[str(row[0])].add(_family(case))
        if case.params or not result.outcome.tensors:
            tried[case.op] += 1
            made[case.op] += result.outcome.reason == ""
            reasons[case.op][result.outcome.reason] += 1
    return [
        OpCoverage(
            op=op,
            eval=counts["eval"][op],
            grad=counts["grad"][op],
            tried=tried[op],
            built=made[op],
            families=len(where[op]),
            missing=_missing(counts, op, bool(made[op]), reasons[op]),
        )
        for op in ops
    ]


def _family(case: Case) -> Hashable:
    return case.place, case.op


def _missing(counts: Mapping[str, Counter[str]], op: str, rule: bool, reasons: Counter[str]) -> str:
    if not any(found[op] for found in counts.values()):
        return "no case"
    if not rule and not reasons:
        return "no input of its cases is differentiated"
    if not rule:
        reason = reasons.most_common(1)[0][0]
        said_so = reason.startswith("unsupported") and reason.endswith(f": {op}")
        return "ggml has no backward rule" if said_so else f"no backward: {reason}"
    if not counts["grad"][op]:
        return "no case for grad, although ggml has a backward rule"
    return "" if counts["eval"][op] else "no case for eval"
