"""Which cases a user asked for: ops, globs, full ids, and a pattern on the variables."""

import gc
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gradcheck.cases.expand import expand
from gradcheck.cases.family import Family, read_families
from gradcheck.cases.shipped import given_files, shipped_files
from gradcheck.cases.source import read_documents
from gradcheck.model.case import Case
from gradcheck.model.errors import UsageError
from gradcheck.model.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run.

    ops: op names, globs (`MUL*`) and full case ids; none means every op
    pattern: a regular expression searched for in the variables, as in the C++ tool
    files: case files or folders that replace the shipped ones
    variants: names of variants, which follow the cases that are selected; None: those that suit the mode
    """

    ops: tuple[str, ...] = ()
    pattern: str | None = None
    files: tuple[str, ...] = ()
    variants: tuple[str, ...] | None = None


def load_families(files: tuple[str, ...] = (), ops: tuple[str, ...] | None = None) -> list[Family]:
    """The families of the given files, or the shipped ones. Raises CaseFileError and UsageError.

    ops: shipped files that name none of these are not read, which is most of the time of a run of one op
    """
    paths = given_files(files) if files else shipped_files()
    if ops is not None and not files:
        words = re.compile("|".join(rf"\b{re.escape(op)}\b" for op in ops), re.IGNORECASE)
        paths = [(path, shown) for path, shown in paths if words.search(path.read_text("utf-8"))]
    return [
        family
        for path, shown in paths
        for document in read_documents(path, shown)
        for family in read_families(document)
    ]


def select(selection: Selection, mode: str) -> list[Case]:
    """The plain cases of `mode` that a selection names. Raises UsageError where a part of it names nothing."""
    with _collector_paused():
        return _select(selection, mode)


def cases_by_mode(
    files: tuple[str, ...], modes: Iterable[str], ops: Collection[str] | None = None
) -> dict[str, list[Case]]:
    """Every case of the modes, from files that are read once. Raises CaseFileError and UsageError.

    ops: only cases of these, whether there are any or not
    """
    with _collector_paused():
        families = load_families(files, None if ops is None else tuple(ops))
        if ops is not None:
            families = [family for family in families if family.op in ops]
        return {mode: expand(families, mode) for mode in modes}


def variants_by_id(selection: Selection) -> dict[str, tuple[str, ...]]:
    """Of each case whose full id is in a selection, the variants that are asked for by it: "" for the case itself."""
    found: dict[str, tuple[str, ...]] = {}
    for term in map(_Term, selection.ops):
        if term.is_id:
            found[term.base] = (*found.get(term.base, ()), term.variant)
    return found


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Records hold no cycles, and a collector that walks them again and again takes longer than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _select(selection: Selection, mode: str) -> list[Case]:
    wanted = [_Term(text) for text in selection.ops]
    named = tuple(term.op for term in wanted) if wanted and not any(term.is_glob for term in wanted) else None
    families = load_families(selection.files, named)
    for term in wanted:
        if not any(term.takes_op(family.op) for family in families):
            raise UsageError(_unknown_op(term.text, {family.op for family in load_families(selection.files)}))
    if wanted:
        families = [family for family in families if any(term.takes_op(family.op) for term in wanted)]
    cases = expand(families, mode)
    if wanted:
        _check_ids(wanted, cases, mode)
        cases = [case for case in cases if any(term.takes(case) for term in wanted)]
    if selection.pattern is not None:
        cases = _matching(cases, selection.pattern)
    return cases


class _Term:
    """One part of `-o`."""

    def __init__(self, text: str) -> None:
        self.text = text
        # OP(name), or OP(name)+variant
        head, plus, tail = text.rpartition(")+")
        self.base, self.variant = (f"{head})", tail) if plus else (text, "")
        self.is_id = self.base.endswith(")") and "(" in self.base
        self.op = text.split("(", 1)[0] if self.is_id else text
        self.is_glob = not self.is_id and any(sign in text for sign in "*?[")

    def takes_op(self, op: str) -> bool:
        return op == self.op if self.is_id else fnmatchcase(op.upper(), self.op.upper())

    def takes(self, case: Case) -> bool:
        return case.id == self.base if self.is_id else self.takes_op(case.op)


def _check_ids(terms: Iterable[_Term], cases: list[Case], mode: str) -> None:
    ids = {case.id for case in cases}
    for term in terms:
        if term.is_id and term.base not in ids:
            raise UsageError(f"no {mode} case {term.base}{did_you_mean(term.base, ids, count=3, cutoff=0.3)}")
        if not term.is_id and not any(term.takes_op(case.op) for case in cases):
            hint = "; `gradcheck perf --cases-of eval` times those of eval" if mode == "perf" else ""
            raise UsageError(f"{term.text} has no cases for {mode}{hint}")


def _unknown_op(text: str, ops: set[str]) -> str:
    hint = did_you_mean(text, ops, count=3) or "; `gradcheck list --ops` shows them all"
    return f"no cases for the op {text}{hint}"


def _matching(cases: list[Case], pattern: str) -> list[Case]:
    try:
        regex = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"-p {pattern}: not a regular expression: {error}") from None
    found = [case for case in cases if regex.search(case.name)]
    if not found:
        example = f" (one of them: {cases[0].name})" if cases else ""
        raise UsageError(f"-p {pattern}: no case's variables match{example}")
    return found
