"""Cases with their evidence: a block for each bad one, a line for each one where all are wanted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradcheck.model.flakiness import FailureRate
from gradcheck.model.result import Evidence, Metric, Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports.flakiness import failing_text, rate_text, rates_of_cases
from gradcheck.reports.placement import placement_text
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.view import STYLES, Detail
from gradcheck.reports.wording import (
    against_limit,
    bound,
    duration,
    measured_time,
    one_line,
    plural,
    printable,
    rate,
    scientific,
)

if TYPE_CHECKING:
    from rich.text import Text

#: Mode -> what it calls the value under test and the one it is held against.
_SIDES: dict[str, tuple[str, str]] = {
    "grad": ("backprop", "numeric"),
    "eval": ("target", "reference"),
}
_LOG_LINES = 5
_INDENT = "  "
_LABEL_WIDTH = 9


def failure_blocks(run: Run, detail: Detail) -> "Iterator[list[Text]]":
    """The lines of a block for every bad case, in the order of the run."""
    rates = rates_of_cases(run)
    for result in run.results:
        if result.status.bad:
            yield list(_block(run, result, detail, rates.get((result.target, result.case_id))))


def failure_ids(run: Run) -> "Iterator[Text]":
    """`FAIL OP(name=value,...)` for every bad case."""
    for result in run.results:
        if result.status.bad:
            yield _title(run, result)


def case_lines(run: Run) -> "Iterator[Text]":
    """A line for every case: its status, id, what was measured, or why nothing was."""
    width = max((len(result.status) for result in run.results), default=0)
    rates = rates_of_cases(run)
    for result in run.results:
        line = _title(run, result, width)
        facts = [_metric_text(metric, compare=False) for metric in result.outcome.metrics]
        if rate_of_case := rates.get((result.target, result.case_id)):
            facts.append(rate_text(rate_of_case))
        facts.append(duration(result.elapsed_s))
        line.append(f"  {', '.join(facts)}")
        if result.outcome.placement is not None:
            line.append(f"  {placement_text(result.outcome.placement)}")
        if reason := _reason(result):
            line.append(f"  {one_line(reason)}")
        yield line


def _block(run: Run, result: Result, detail: Detail, failures: FailureRate | None) -> "Iterator[Text]":
    outcome = result.outcome
    yield _title(run, result)
    yield _labelled("at", str(result.place))
    if reason := _reason(result):
        yield from _labelled_lines("why", reason.splitlines())
    if failures is not None:
        yield _labelled("seeds", failing_text(result, failures))
    for label, metric in zip(_once("metrics"), outcome.metrics, strict=False):
        exceeded = metric.limit is not None and not metric.beyond <= metric.limit
        yield _labelled(label, _metric_text(metric, compare=True), "bold red" if exceeded else "")
    if outcome.counts:
        yield _labelled("counts", ", ".join(f"{count} {name}" for name, count in outcome.counts))
    if outcome.evidence:
        yield from _labelled_lines("worst", evidence_rows(result.mode, outcome.evidence))
    yield from _labelled_lines("hint", outcome.diagnosis)
    if outcome.placement is not None:
        yield _labelled("placed", placement_text(outcome.placement))
    yield from _labelled_lines("note", outcome.notes)
    yield from _labelled_lines("log", _log_tail(result.log, detail), "dim")
    yield _labelled("repeat", repeat_command(run.info, result), "bold")


def evidence_rows(mode: str, evidence: Sequence[Evidence]) -> list[str]:
    """The elements as aligned rows under a heading."""
    got, want = _SIDES.get(mode, ("got", "want"))
    rows = [("element", got, want, "asymmetry", "uncertainty")]
    rows += [
        (
            f"{item.tensor}[{','.join(map(str, item.index))}]",
            f"{item.got:.7g}",
            f"{item.want:.7g}",
            scientific(item.asymmetry),
            scientific(item.uncertainty),
        )
        for item in evidence
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _title(run: Run, result: Result, width: int = 0) -> "Text":
    from rich.text import Text

    where = f" on {result.target}" if len(run.info.targets) > 1 else ""
    status = Text(result.status.value.ljust(width), STYLES[result.status])
    return Text.assemble(status, " ", (f"{result.case_id}{where}", "bold" if result.status.bad else ""))


def _reason(result: Result) -> str:
    """Why a case ended as it did, with what is known of a known failure."""
    reason = result.outcome.reason
    known = result.known
    if known is None:
        return reason
    if result.status is Status.XPASS:
        expected = f"passes, but is known to end as {known.status} on ggml {known.ggml}: {known.reason}"
        return f"{expected}\n{reason}" if reason else expected
    if result.status is Status.XFAIL:
        return f"{known.reason} (known: {known.status} on ggml {known.ggml})"
    return f"{reason}\nknown to end as {known.status} on ggml {known.ggml}: {known.reason}".strip()


def _metric_text(metric: Metric, compare: bool) -> str:
    if metric.unit == "s":
        text = measured_time(metric.value)
    elif metric.unit:
        text = rate(metric.value, metric.unit)
    elif compare and metric.limit is not None:
        text = against_limit(metric.beyond, metric.limit)
        if metric.uncertainty:
            text += f" beyond an uncertainty of {scientific(metric.uncertainty)}"
    else:
        text = scientific(metric.value)
    if metric.unit and compare and metric.limit is not None:
        text += f" (limit {bound(metric.limit)} {metric.unit})"
    return f"{metric.name} {text}"


def _log_tail(log: str, detail: Detail) -> list[str]:
    lines = log.rstrip().splitlines()
    hidden = len(lines) - _LOG_LINES
    if detail is Detail.VERBOSE or hidden <= 0:
        return lines
    return [f"(the last {_LOG_LINES} of {plural(len(lines), 'line')}; -v shows all)", *lines[-_LOG_LINES:]]


def _labelled_lines(label: str, lines: Iterable[str], style: str = "") -> "Iterator[Text]":
    for word, line in zip(_once(label), lines, strict=False):
        yield _labelled(word, line, style)


def _labelled(label: str, text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text.assemble(_INDENT, (label.ljust(_LABEL_WIDTH), "dim"), (printable(text), style))


def _once(label: str) -> Iterator[str]:
    yield label
    while True:
        yield ""
