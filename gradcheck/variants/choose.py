"""Which variants of which cases a run has."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradcheck.model.case import Case
from gradcheck.model.errors import UsageError
from gradcheck.model.nearest import did_you_mean
from gradcheck.variants.sizes import Resize
from gradcheck.variants.table import DEFAULT_NAMES, VARIANTS

#: Words that stand for variants: every one of every case; those of DEFAULT_NAMES, of one case of each op; no one.
ALL, DEFAULT, NONE = "all", "default", "none"


def vary(
    cases: Sequence[Case],
    wanted: Sequence[str] | None,
    by_id: Mapping[str, Sequence[str]],
    resize: Resize,
    *,
    default: bool,
) -> list[Case]:
    """Cases with their variants behind them.

    cases: plain ones
    wanted: names of VARIANTS, or one of ALL, DEFAULT, NONE; None: what `default` says, for cases that are not in by_id
    by_id: of cases whose full id was given, the variants that were: "" for the case itself
    Raises UsageError for a variant in `by_id` that the case does not have.
    """
    names, few = _names(wanted, default)
    chosen = {case.id for case in (representatives(cases) if few else cases)} if names else set()
    found: list[Case] = []
    for case in cases:
        exact = by_id.get(case.id)
        if exact is None or "" in exact:
            found.append(case)
            if case.id in chosen and (wanted is not None or exact is None):
                found += variants_of(case, names, resize)
        found += [_by_spelling(case, spelling, resize) for spelling in exact or () if spelling]
    return list({case.id: case for case in found}.values())


def variants_of(case: Case, names: Iterable[str], resize: Resize) -> Iterator[Case]:
    """The variants of a case, in the order of the names; a case that is skipped has none."""
    if not case.skip:
        for name in names:
            yield from VARIANTS[name].make(case, resize)


def representatives(cases: Sequence[Case]) -> list[Case]:
    """Of each op the case with most to vary: three axes, or as many as there are, and two params; then the smallest.

    Cases that are known to fail say little by failing again; they come last.
    """
    best: dict[str, tuple[tuple[int, ...], Case]] = {}
    for case in cases:
        rank = _rank(case)
        if case.op not in best or rank < best[case.op][0]:
            best[case.op] = rank, case
    return [case for _, case in best.values()]


def _rank(case: Case) -> tuple[int, ...]:
    wide = max((sum(size > 1 for size in declared.ne) for declared in case.params), default=0)
    fails = any(not known.variant for known in case.known)
    total = sum(math.prod(declared.ne) for declared in case.inputs)
    return case.skip != "", fails, -min(wide, 3), -min(len(case.params), 2), total


def _names(wanted: Sequence[str] | None, default: bool) -> tuple[tuple[str, ...], bool]:
    """The names that are wanted, and whether of one case of each op only."""
    if wanted is None:
        wanted = (DEFAULT,) if default else (NONE,)
    if DEFAULT in wanted:
        return DEFAULT_NAMES, True
    if ALL in wanted:
        return tuple(VARIANTS), False
    return tuple(name for name in wanted if name != NONE), False


def _by_spelling(case: Case, spelling: str, resize: Resize) -> Case:
    name = spelling.partition(":")[0]
    offered = list(variants_of(case, [name] if name in VARIANTS else VARIANTS, resize))
    found = next((made for made in offered if made.variant == spelling), None)
    if found is None:
        known = [made.variant for made in offered or variants_of(case, VARIANTS, resize)]
        hint = did_you_mean(spelling, known) or f"; there are {', '.join(known) or 'none'}"
        raise UsageError(f"{case.id} has no variant {spelling}{hint}")
    return found
