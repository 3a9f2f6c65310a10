"""`gradcheck list --coverage`: a row for each op of the loaded ggml, and what is missing."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gradcheck.cli.graph import aligned
from gradcheck.model import codec
from gradcheck.model.coverage import OpCoverage
from gradcheck.model.errors import UsageError
from gradcheck.model.nearest import did_you_mean
from gradcheck.reports.wording import plural

_HEADINGS = ("op", "eval", "grad", "rule", "families", "missing")


def chosen(rows: Sequence[OpCoverage], wanted: Sequence[str], only_missing: bool) -> list[OpCoverage]:
    """The rows of the ops or globs in `wanted`, of all where it is empty. Raises UsageError where one names no op."""
    names = [row.op for row in rows]
    for text in wanted:
        if not any(_names(text, name) for name in names):
            raise UsageError(f"this ggml has no op {text}{did_you_mean(text, names, count=3)}")
    found = [row for row in rows if not wanted or any(_names(text, row.op) for text in wanted)]
    return [row for row in found if row.missing] if only_missing else found


def coverage_lines(rows: Sequence[OpCoverage]) -> Iterator[str]:
    """The rows as a table, below it how many ops there are and how many have cases."""
    if not rows:
        return
    yield from aligned([_HEADINGS, *map(_cells, rows)], right=(1, 2, 3, 4))
    with_eval, with_grad = sum(row.eval > 0 for row in rows), sum(row.grad > 0 and row.built > 0 for row in rows)
    yield ""
    yield f"{plural(len(rows), 'op')}, {with_eval} with cases for eval, {with_grad} for grad with a backward rule"


def coverage_records(rows: Iterable[OpCoverage]) -> Iterator[dict[str, Any]]:
    """The rows as plain data."""
    return (codec.encode(row) for row in rows)


def _names(text: str, op: str) -> bool:
    return fnmatchcase(op.upper(), text.upper())


def _cells(row: OpCoverage) -> tuple[str, ...]:
    return (row.op, str(row.eval), str(row.grad), _rule(row), str(row.families), row.missing)


def _rule(row: OpCoverage) -> str:
    """Whether the op's graphs have a backward: yes, no, or how many of those that were built."""
    if not row.tried:
        return "-"
    return {0: "no", row.tried: "yes"}.get(row.built, f"{row.built} of {row.tried}")
