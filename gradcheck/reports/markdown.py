"""Tables in Markdown, for a page of documentation or the summary of a CI job."""

from collections.abc import Iterable, Iterator, Sequence

from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.reports.flakiness import notes, sheets
from gradcheck.reports.summary import summary_line
from gradcheck.reports.table import COLUMNS, speaks, table_title
from gradcheck.reports.text import header_line
from gradcheck.reports.view import View

_LEGEND = "✅ every case, 🟡 some, ❌ none, - nothing to ask"


def render_markdown(run: Run, _view: View) -> str:
    """A table, then a line each for what ran and how it ended.

    support: an op a row, forward and backward of each target a column; else a table for each target, as in text
    """
    tables = [_matrix(run)] if run.info.mode == "support" else list(_target_tables(run))
    remarks = [_LEGEND] if run.info.mode == "support" else list(notes(run))
    tables += [[f"### {one.title}", "", *_table(one.headings, one.rows, one.left)] for one in sheets(run)]
    blocks = ["\n".join(table) for table in tables]
    return "\n\n".join([*blocks, *remarks, f"{header_line(run.info)}: {summary_line(run)}"]) + "\n"


def _matrix(run: Run) -> list[str]:
    targets = tuple(dict.fromkeys(result.target for result in run.results))
    asked = [(target, direction) for target in targets for direction in ("forward", "backward")]
    ops = sorted({result.op for result in run.results})
    answers: dict[tuple[str, str, str], list[bool]] = {}
    for result in run.results:
        for direction, yes in _answers(result):
            answers.setdefault((result.op, result.target, direction), []).append(yes)
    heading = ["op", *(f"{target} {direction}" for target, direction in asked)]
    rows = [[op, *(_mark(answers.get((op, *one), [])) for one in asked)] for op in ops]
    return list(_table(heading, rows, left=len(heading)))


def _answers(result: Result) -> Iterator[tuple[str, bool]]:
    """What a case was asked for; one that ended without an answer is not supported."""
    counts = {"forward": 0, **dict(result.outcome.counts)}
    return ((name, bool(counts[name])) for name in ("forward", "backward") if name in counts)


def _mark(answers: Sequence[bool]) -> str:
    if not answers:
        return "-"
    if all(answers):
        return "✅"
    return f"🟡 {sum(answers)} of {len(answers)}" if any(answers) else "❌"


def _target_tables(run: Run) -> Iterator[list[str]]:
    by_case = run.info.mode == "perf"
    for target in dict.fromkeys(result.target for result in run.results):
        results = tuple(result for result in run.results if result.target == target)
        groups: dict[str, tuple[Result, ...]] = {}
        for result in results:
            label = result.case_id if by_case else result.op
            groups[label] = (*groups.get(label, ()), result)
        columns = [column for column in COLUMNS[run.info.mode] if speaks(column, results)]
        heading = ["case" if by_case else "op", *(column.heading for column in columns)]
        rows = [[label, *(column.cell(group) for column in columns)] for label, group in groups.items()]
        if not by_case:
            rows.append(["total", *(column.cell(results) for column in columns)])
        yield [f"### {table_title(run.info, target)}", "", *_table(heading, rows, left=1)]


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> Iterator[str]:
    """Lines of a table; all but the first `left` columns are numbers."""
    yield _line(heading)
    yield _line("---" if index < left else "---:" for index in range(len(heading)))
    yield from map(_line, rows)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
