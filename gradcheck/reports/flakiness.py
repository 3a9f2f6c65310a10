"""What many seeds say: failure rates with their intervals, the nearest limits, and limits that would do."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradcheck.model.flakiness import Basis, FailureRate, Flakiness, Margin, Suggestion
from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.reports.table import box
from gradcheck.reports.view import View
from gradcheck.reports.wording import bound, plural, scientific

if TYPE_CHECKING:
    from rich.table import Table

#: Failing seeds that are named, the first ones.
_NAMED = 10
_NARROWEST = 12


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table as text: the first `left` columns are words, all others numbers. `total`: the last row is one.

    spare: headings of the columns that go where the width is short, the first one first
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    total: bool = False
    spare: tuple[str, ...] = ()


def sheets(run: Run) -> Iterator[Sheet]:
    """For each target the failure rates of its ops and, where they were asked for, limits."""
    found = run.flakiness
    if found is None:
        return
    for total in found.totals:
        yield _rates(run, found, total)
        if found.target_rate is not None:
            yield _limits(found, found.target_rate, total.target)


def sheet_table(sheet: Sheet, view: View) -> "Table":
    """A sheet for a console."""
    from rich.table import Table

    table = Table(box=box(view), show_edge=False, pad_edge=False, padding=(0, 0, 0, 1), header_style="bold")
    table.title, table.title_justify, table.title_style = sheet.title, "left", "bold"
    kept = _fitting(sheet, view.width)
    for at in kept:
        heading = sheet.headings[at]
        if at < sheet.left:
            table.add_column(heading, overflow="fold", min_width=_NARROWEST if at == 0 else None)
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    for at, row in enumerate(sheet.rows):
        last = sheet.total and at == len(sheet.rows) - 1
        if last:
            table.add_section()
        table.add_row(*(row[column] for column in kept), style="bold" if last else None)
    return table


def _fitting(sheet: Sheet, width: int) -> list[int]:
    """The columns that fit; words may be folded, numbers are never cut."""
    widths = [max(map(len, column)) for column in zip(sheet.headings, *sheet.rows, strict=True)]
    widths[0] = _NARROWEST
    kept = list(range(len(widths)))
    for heading in sheet.spare:
        if sum(widths[at] + 2 for at in kept) <= width:
            break
        kept.remove(sheet.headings.index(heading))
    return kept


def notes(run: Run) -> Iterator[str]:
    """What the tables leave out or do not say by themselves."""
    found = run.flakiness
    if found is None:
        return
    if found.known:
        yield f"{plural(found.known, 'case')} with a known failure left out of all rates"
    failed = sum(suggestion.failed for suggestion in found.suggestions)
    if failed:
        yield "limits are proposed from all runs, failed ones too: look into each failure before a limit is raised"


def rate_text(rate: FailureRate) -> str:
    """`3 of 200 seeds failed: 1.5e-2 (3.1e-3 to 4.3e-2), element at 104% of its limit` for a case."""
    nearest = f", {_nearest(rate.margins[0])} of its limit" if rate.margins else ""
    shown = f"{scientific(rate.rate)} ({_interval(rate)})"
    return f"{rate.failed:,} of {plural(rate.runs, 'seed')} failed: {shown}{nearest}"


def failing_text(result: Result, rate: FailureRate) -> str:
    """`17, 40, 111 fail: a rate of 1.5e-2 (3.1e-3 to 4.3e-2)` for a case that fails."""
    trials = result.outcome.trials
    seeds = [str(trial.seed) for trial in trials.runs if trial.status.bad] if trials else []
    more = f" and {len(seeds) - _NAMED} more" if len(seeds) > _NAMED else ""
    verb = "fails" if len(seeds) == 1 else "fail"
    return f"{', '.join(seeds[:_NAMED])}{more} {verb}: a rate of {scientific(rate.rate)} ({_interval(rate)})"


def rates_of_cases(run: Run) -> dict[tuple[str, str], FailureRate]:
    """The rate of each case on each target."""
    return {(rate.target, rate.case_id): rate for rate in run.flakiness.cases} if run.flakiness else {}


def _rates(run: Run, found: Flakiness, total: FailureRate) -> Sheet:
    settings = run.info.settings
    ops = [rate for rate in found.ops if rate.target == total.target]
    rows = [_rate_row(rate.op, rate) for rate in ops]
    if len(rows) > 1:
        rows.append(_rate_row("total", total))
    return Sheet(
        title=f"seeds {settings.seed} to {settings.seed + settings.seeds - 1} on {total.target}",
        headings=("op", "cases", "runs", "failed", "rate", f"{found.confidence:.0%} interval", "nearest limit"),
        rows=tuple(rows),
        total=len(rows) > 1,
        spare=("rate", "cases", "runs", "nearest limit"),
    )


def _rate_row(label: str, rate: FailureRate) -> tuple[str, ...]:
    nearest = _nearest(rate.margins[0]) if rate.margins else "-"
    counts = (f"{rate.cases:,}", f"{rate.runs:,}", f"{rate.failed:,}")
    return (label, *counts, scientific(rate.rate), _interval(rate), nearest)


def _interval(rate: FailureRate) -> str:
    return f"{scientific(rate.low)} to {scientific(rate.high)}"


def _nearest(margin: Margin) -> str:
    return f"{margin.metric} at {_percent(margin.of_limit)}"


def _percent(share: float) -> str:
    percent = 100 * share
    if not math.isfinite(percent) or percent >= 9999.5:
        return f"{scientific(percent)}%"
    if percent >= 9.95 or percent == 0:
        return f"{percent:.0f}%"
    return f"{percent:.2g}%" if percent >= 0.01 else "<0.01%"


def _limits(found: Flakiness, rate: float, target: str) -> Sheet:
    return Sheet(
        title=f"limits for a failure rate of {bound(rate)} on {target}",
        headings=("op or case", "metric", "limit", "proposed", "largest", "values", "from", "the limit"),
        rows=tuple(_limit_row(one) for one in found.suggestions if one.target == target),
        left=2,
        spare=("from", "values", "largest", "the limit"),
    )


def _limit_row(one: Suggestion) -> tuple[str, ...]:
    proposed = "-" if one.proposed is None else bound(one.proposed)
    numbers = (bound(one.limit), proposed, scientific(one.largest), f"{one.samples:,}")
    return (one.case_id or one.op, one.metric, *numbers, one.basis.value, _judgement(one))


def _judgement(one: Suggestion) -> str:
    """What is to be said of the present limit."""
    if one.too_tight:
        return "probably too tight"
    if one.basis is Basis.MAXIMUM or one.proposed is None:
        return "held so far"
    if not one.holds:
        return "takes more seeds"
    return f"holds, x{one.limit / one.proposed:,.0f}" if one.limit >= 2 * one.proposed else "holds"
