"""The final tables: a row for each op (perf: each case), columns by mode, numbers never cut."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradcheck.model.result import Result
from gradcheck.model.run import Run, RunInfo
from gradcheck.model.status import Status
from gradcheck.reports.view import STYLES, View
from gradcheck.reports.wording import duration, measured_time, rate, scientific

if TYPE_CHECKING:
    from rich.box import Box
    from rich.table import Table

#: Results that one row tells of.
Group = tuple[Result, ...]

_BAD = tuple(status for status in Status if status.bad)
_LABEL_MINIMUM = 12
#: The id of a case, which is much longer than the name of an op, shall not be folded into a narrow stripe.
_CASE_MINIMUM = 40


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers.

    statuses: what a status column counts; it is left out where none occurs, unless `always`
    rank: the order in which columns go when the width is short, highest first; 0 never goes
    optional: left out where no row has anything to say
    """

    heading: str
    cell: Callable[[Group], str]
    statuses: tuple[Status, ...] = ()
    always: bool = False
    rank: int = 0
    optional: bool = False


def _count(*statuses: Status, heading: str = "", always: bool = False, rank: int = 0) -> Column:
    def cell(group: Group) -> str:
        return str(sum(result.status in statuses for result in group))

    return Column(heading or statuses[0].value.lower(), cell, statuses, always, rank)


def _worst(heading: str, metric: str, rank: int) -> Column:
    def cell(group: Group) -> str:
        # A known failure's value would hide how well the others do.
        results = [r for r in group if r.status is not Status.XFAIL]
        # Where a case passes, NaN says that nothing could be measured in this way.
        values = [
            m.value
            for r in results
            for m in r.outcome.metrics
            if m.name == metric and not (r.status is Status.PASS and math.isnan(m.value))
        ]
        return scientific(max(values, key=lambda v: math.inf if math.isnan(v) else v)) if values else "-"

    return Column(heading, cell, rank=rank)


def _answer(heading: str) -> Column:
    def cell(group: Group) -> str:
        answers = [count for r in group for name, count in r.outcome.counts if name == heading]
        if not answers:
            return "-"
        if all(answers) or not any(answers):
            return "yes" if answers[0] else "no"
        return f"{sum(map(bool, answers))} of {len(answers)}"

    return Column(heading, cell)


def _time_or_status(group: Group) -> str:
    """The time of a case, or how it ended where it has none."""
    untimed = {r.status.value.lower() for r in group if not _values((r,), "time")}
    return ", ".join(sorted(untimed)) or _median_time(group, "time")


def _median_time(group: Group, metric: str) -> str:
    values = _values(group, metric)
    return measured_time(statistics.median(values)) if values else "-"


def _spread(group: Group) -> str:
    """The distance between the quartiles of the samples, in per cent of the median."""
    low, median, high = (_values(group, name) for name in ("time_q1", "time", "time_q3"))
    if not (low and median and high and median[0]):
        return "-"
    return f"{100 * (high[0] - low[0]) / median[0]:.0f}%"


def _rate(group: Group) -> str:
    """Operations a second where the case declares them, else bytes."""
    for metric, unit in (("flops", "FLOPS"), ("bandwidth", "B/s")):
        if values := _values(group, metric):
            return rate(statistics.median(values), unit)
    return "-"


def _runs(group: Group) -> str:
    counts = [count for r in group for name, count in r.outcome.counts if name == "runs"]
    return f"{sum(counts):,}" if counts else "-"


def _values(group: Group, metric: str) -> list[float]:
    return [m.value for r in group for m in r.outcome.metrics if m.name == metric]


def _elapsed(group: Group) -> str:
    return duration(sum(result.elapsed_s for result in group))


_VERDICTS = (
    _count(Status.PASS, always=True),
    _count(Status.FAIL, always=True),
    *(_count(status) for status in _BAD if status is not Status.FAIL),
    _count(Status.XFAIL, rank=2),
    _count(Status.UNSUPPORTED, always=True, rank=3),
    _count(Status.SKIP, always=True, rank=6),
)
_ALL_BAD = _count(*_BAD, heading="bad", always=True)
_TROUBLE = tuple(_count(status) for status in _BAD)
_TIME = Column("time", _elapsed, rank=5)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "grad": (*_VERDICTS, _worst("MAA", "maa", 1), _worst("element", "element", 4), _TIME),
    "eval": (*_VERDICTS, _worst("NMSE", "nmse", 1), _TIME),
    "perf": (
        Column("time", _time_or_status),
        Column("spread", _spread, rank=2),
        Column("rate", _rate, rank=1, optional=True),
        Column("whole graph", lambda group: _median_time(group, "graph_time"), rank=7, optional=True),
        Column("runs", _runs, rank=6),
    ),
    "support": (
        Column("cases", lambda group: str(len(group)), rank=1),
        *_TROUBLE,
        _answer("forward"),
        _answer("backward"),
    ),
}


def result_tables(run: Run, view: View) -> "list[Table]":
    """A table for each target that has results."""
    targets = tuple(dict.fromkeys(result.target for result in run.results))
    return [_table(run.info, tuple(r for r in run.results if r.target == target), view, target) for target in targets]


def _table(info: RunInfo, results: Group, view: View, target: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    mode = info.mode
    by_case = mode == "perf"
    groups = _groups(results, by_case)
    bad = {label for label, group in groups.items() if any(r.status.bad for r in group)}
    mark_width = 2 if bad else 0
    labels = max(map(len, groups))
    room = view.width - mark_width
    narrowest = max(_LABEL_MINIMUM, min(_CASE_MINIMUM, room // 2)) if by_case else _LABEL_MINIMUM
    columns = fit(COLUMNS[mode], results, groups.values(), room - labels, room - min(labels, narrowest))
    # A divider of one blank and a left padding of one: two blanks between columns, none outside.
    table = Table(box=box(view), show_edge=False, pad_edge=False, padding=(0, 0, 0, 1), header_style="bold")
    table.title, table.title_justify, table.title_style = table_title(info, target), "left", "bold"
    if bad:
        table.add_column("", width=1, no_wrap=True)  # "!" where something is bad
    table.add_column("case" if by_case else "op", overflow="fold", min_width=len("total"))
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for label, group in groups.items():
        mark = ["!" if label in bad else ""] if bad else []
        cells = [Text(text, _style(column, text)) for column, text in _cells(columns, group)]
        table.add_row(*mark, label, *cells)
    if len(groups) > 1 and not by_case:
        table.add_section()
        totals = [text for _, text in _cells(columns, results)]
        table.add_row(*([""] if bad else []), "total", *totals, style="bold")
    return table


def speaks(column: Column, everything: Group) -> bool:
    """Whether a column has more than zeros and dashes to show."""
    if column.optional:
        return column.cell(everything) != "-"
    return not column.statuses or column.always or any(result.status in column.statuses for result in everything)


def table_title(info: RunInfo, target: str) -> str:
    """What a table is of, as in `grad on CPU`."""
    # Times of one pass must not be taken for those of both.
    alone = " (the backward pass alone)" if info.mode == "perf" and info.settings.backward else ""
    return f"{info.mode} on {target}{alone}"


def _groups(results: Group, by_case: bool) -> dict[str, Group]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.case_id if by_case else result.op, []).append(result)
    return {label: tuple(group) for label, group in groups.items()}


def fit(
    columns: Sequence[Column], everything: Group, groups: Iterable[Group], comfort: int, room: int
) -> tuple[Column, ...]:
    """The columns that have something to say and fit into `room` characters.

    Columns of zeros go where `comfort` (room that leaves the labels whole) is exceeded. Then, for `room`, the
    bad endings share one column, and at last columns go by rank. Numbers are never cut.
    """
    rows = [*groups, everything]
    present = {result.status for result in everything}
    chosen = [c for c in columns if speaks(c, everything)]
    if _width(chosen, rows) > comfort:
        chosen = [c for c in chosen if not c.statuses or not c.rank or present & set(c.statuses)]
    if _width(chosen, rows) > room and sum(_is_bad(c) for c in chosen) > 1:
        first = next(i for i, c in enumerate(chosen) if _is_bad(c))
        rest = [c for c in chosen if not _is_bad(c)]
        chosen = [*rest[:first], _ALL_BAD, *rest[first:]]
    while _width(chosen, rows) > room and any(c.rank for c in chosen):
        chosen.remove(max(chosen, key=lambda c: c.rank))
    return tuple(chosen)


def _is_bad(column: Column) -> bool:
    return bool(column.statuses) and column.statuses[0].bad


def _width(columns: Iterable[Column], rows: Sequence[Group]) -> int:
    return sum(2 + max(len(c.heading), *(len(c.cell(row)) for row in rows)) for c in columns)


def _cells(columns: Iterable[Column], group: Group) -> list[tuple[Column, str]]:
    return [(column, column.cell(group)) for column in columns]


def _style(column: Column, text: str) -> str:
    if text in ("0", "-"):
        return "dim"
    return STYLES[column.statuses[0]] if column.statuses else ""


def box(view: View) -> "Box":
    """The rules of a table: one under its heading, one above its total."""
    from rich.box import Box

    rule = "─" if view.unicode else "-"
    blank, line = "    \n", f"{rule * 4}\n"
    return Box(blank + blank + line + blank + blank + line + blank + blank)
