"""The tables of a comparison: for the terminal, as Markdown and as JSON."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import OpRow, Unmatched

_ROWS = ("op", "cases", "of C++", "of ours", "judged", "C++ s", "-j1 s", "-j2 s", "C++/-j1", "C++/-j2", "outside")
_UNMATCHED = ("op", "what happened", "compared", "C++ s", "-j1 s for those", "cases of ours")


@dataclass(frozen=True, slots=True)
class Summary:
    """All that was measured, and where."""

    facts: dict[str, str]
    rows: tuple[OpRow, ...]
    unmatched: tuple[Unmatched, ...]

    def totals(self) -> dict[str, float]:
        """Sums over the ops that both finish, and how often gradcheck is faster."""
        if not self.rows:
            return {}
        cpp, j1, j2 = (
            sum(times)
            for times in zip(*((r.cpp.median_s, r.j1.median_s, r.j2.median_s) for r in self.rows), strict=True)
        )
        return {
            "cpp_s": cpp,
            "j1_s": j1,
            "j2_s": j2,
            "total_ratio_j1": cpp / j1,
            "total_ratio_j2": cpp / j2,
            "geometric_mean_j1": _geometric_mean([r.ratio_j1 for r in self.rows]),
            "geometric_mean_j2": _geometric_mean([r.ratio_j2 for r in self.rows]),
            "faster_j1": sum(r.ratio_j1 > 1 for r in self.rows),
            "faster_j2": sum(r.ratio_j2 > 1 for r in self.rows),
        }

    def verdicts(self) -> Counter[str]:
        """`OK / PASS` and so on: the C++ tool's verdict, then gradcheck's, over the shared cases."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found.update(row.verdicts)
        return found


def print_summary(summary: Summary, console: Console) -> None:
    """The tables with rich."""
    for title, head, body in (
        ("Both finish: seconds of whole processes; above 1, gradcheck is faster", _ROWS, _row_cells(summary)),
        ("No ratio", _UNMATCHED, _unmatched_cells(summary)),
    ):
        table = Table(title=title, title_justify="left")
        for number, name in enumerate(head):
            table.add_column(name, justify="left" if number == 0 or name == "what happened" else "right")
        for cells in body:
            table.add_row(*cells)
        console.print(table)
    for line in _closing(summary):
        console.print(line, highlight=False, markup=False)


def render_markdown(summary: Summary) -> str:
    """The same for docs/benchmarks.md."""
    facts = [f"- {name}: {value}" for name, value in summary.facts.items()]
    parts = [
        "\n".join(facts),
        "### Both finish",
        _markdown_table(_ROWS, _row_cells(summary)),
        "\n".join(f"- {line}" for line in _closing(summary)),
        "### No ratio",
        _markdown_table(_UNMATCHED, _unmatched_cells(summary)),
    ]
    return "\n\n".join(parts) + "\n"


def render_json(summary: Summary) -> str:
    """Every sample."""
    record = {**asdict(summary), "totals": summary.totals(), "verdicts": dict(summary.verdicts())}
    return json.dumps(record, indent=1) + "\n"


def _row_cells(summary: Summary) -> list[list[str]]:
    rows = sorted(summary.rows, key=lambda row: row.ratio_j1, reverse=True)
    return [
        [
            row.op + (" *" if row.disturbed else ""),
            *(f"{n:,}" for n in (row.cases, row.cpp_cases, row.our_cases, row.judged)),
            *(f"{times.median_s:.2f}" for times in (row.cpp, row.j1, row.j2)),
            f"{row.ratio_j1:.2f}",
            f"{row.ratio_j2:.2f}",
            f"{row.outside:.0%}",
        ]
        for row in rows
    ]


def _unmatched_cells(summary: Summary) -> list[list[str]]:
    return [
        [
            row.op,
            f"{row.kind}: {row.reason}",
            str(row.compared),
            f"{row.cpp_s:.2f}",
            "" if row.ours_s is None else f"{row.ours_s:.2f}",
            str(row.our_cases),
        ]
        for row in sorted(summary.unmatched, key=lambda row: row.kind)
    ]


def _closing(summary: Summary) -> list[str]:
    totals = summary.totals()
    if not totals:
        return ["No op was finished by both."]
    count = len(summary.rows)
    lines = [
        f"sum over {count} ops: C++ {totals['cpp_s']:.1f} s, gradcheck -j1 {totals['j1_s']:.1f} s, "
        f"-j2 {totals['j2_s']:.1f} s: ratio {totals['total_ratio_j1']:.2f} and {totals['total_ratio_j2']:.2f}",
        f"geometric mean of the ops' ratios: {totals['geometric_mean_j1']:.2f} and {totals['geometric_mean_j2']:.2f}; "
        f"gradcheck is faster in {totals['faster_j1']:.0f} and {totals['faster_j2']:.0f} of {count}",
        "verdicts, C++ / gradcheck: " + ", ".join(f"{key}: {n}" for key, n in summary.verdicts().most_common()),
    ]
    if any(row.disturbed for row in summary.rows):
        lines.append("* other programs took more than a fifth of the processors in every round of one of the commands")
    return lines


def _markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rule = ["---" if name in ("op", "what happened") else "---:" for name in head]
    lines = [head, rule, *([cell.replace("|", "\\|") for cell in cells] for cells in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))
