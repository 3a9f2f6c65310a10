"""The tables of a comparison: for the terminal, as Markdown and as JSON."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import COMMANDS, CPP_1, CPP_ALL, OURS_1, OURS_2, OpRow, Unmatched

_BOTH = "Both finish: seconds of whole processes; a ratio above 1 means that gradcheck is faster"
_NONE = "No ratio"
_ROWS = ("op", "cases", "judged", "C++", "-j1", "ratio", "cpu ratio", "C++ all", "-j2", "ratio all", "outside")
_UNMATCHED = ("op", "what happened", "compared", "C++", "-j1", "of ours")
_LEFT = ("op", "what happened")


@dataclass(frozen=True, slots=True)
class Summary:
    """All that was measured, and where."""

    facts: dict[str, str]
    rows: tuple[OpRow, ...]
    together: OpRow | None
    unmatched: tuple[Unmatched, ...]

    def totals(self) -> dict[str, float]:
        """Sums and means over the ops that both finish; those of `all` where no time limit ended the C++ tool."""
        if not self.rows:
            return {}
        found = {
            f"{name}_s": sum(row.times[name].median_s for row in self.rows if name in (CPP_1, OURS_1) or row.ratio_all)
            for name in COMMANDS
        }
        cpu = {name: sum(row.times[name].median_cpu_s for row in self.rows) for name in (CPP_1, OURS_1)}
        found["ratio_1"] = found["cpp_1_s"] / found["ours_1_s"]
        found["cpu_ratio"] = cpu[CPP_1] / cpu[OURS_1]
        found["mean_ratio_1"] = _geometric_mean([row.ratio_1 for row in self.rows])
        found["mean_cpu_ratio"] = _geometric_mean([row.cpu_ratio for row in self.rows])
        found["faster_1"] = sum(row.ratio_1 > 1 for row in self.rows)
        ratios_all = [row.ratio_all for row in self.rows if row.ratio_all]
        if ratios_all:
            found["ratio_all"] = found["cpp_all_s"] / found["ours_2_s"]
            found["mean_ratio_all"] = _geometric_mean(ratios_all)
            found["faster_all"] = sum(ratio > 1 for ratio in ratios_all)
            found["ops_all"] = len(ratios_all)
        return found

    def verdicts(self) -> Counter[str]:
        """`OK / PASS` and so on: the C++ tool's verdict, then gradcheck's, over the shared cases."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found.update(row.verdicts)
        return found


def print_summary(summary: Summary, console: Console) -> None:
    """The tables with rich."""
    bodies = ((_BOTH, _ROWS, _row_cells(summary)), (_NONE, _UNMATCHED, _unmatched_cells(summary)))
    for title, head, body in bodies:
        if not body:
            continue
        table = Table(title=title, title_justify="left")
        for name in head:
            table.add_column(name, justify="left" if name in _LEFT else "right")
        for cells in body:
            table.add_row(*cells)
        console.print(table)
    for line in _closing(summary):
        console.print(f"- {line}".replace("\\*", "*"), highlight=False, markup=False)


def render_markdown(summary: Summary) -> str:
    """The same for docs/benchmarks.md."""
    parts = [
        "\n".join(f"- {name}: {value}" for name, value in summary.facts.items()),
        f"### {_BOTH}",
        _markdown_table(_ROWS, _row_cells(summary)),
        "\n".join(f"- {line}" for line in _closing(summary)),
        f"### {_NONE}",
        _markdown_table(_UNMATCHED, _unmatched_cells(summary)),
    ]
    return "\n\n".join(parts) + "\n"


def render_json(summary: Summary) -> str:
    """Every sample."""
    record = {**asdict(summary), "totals": summary.totals(), "verdicts": dict(summary.verdicts())}
    return json.dumps(record, indent=1) + "\n"


def _row_cells(summary: Summary) -> list[list[str]]:
    rows = sorted(summary.rows, key=lambda row: row.ratio_1, reverse=True)
    if summary.together:
        rows.append(summary.together)
    return [
        [
            row.op,
            f"{len(row.ids)} ({row.cpp_cases}, {row.our_cases})",
            f"{row.judged:,}" + (f" of {row.elements:,}" if row.judged != row.elements else ""),
            _seconds(row, CPP_1),
            _seconds(row, OURS_1),
            f"{row.ratio_1:.2f}",
            f"{row.cpu_ratio:.2f}",
            _seconds(row, CPP_ALL),
            _seconds(row, OURS_2),
            f"{row.ratio_all:.2f}" if row.ratio_all else "",
            f"{row.outside:.0%}",
        ]
        for row in rows
    ]


def _seconds(row: OpRow, name: str) -> str:
    times = row.times[name]
    return ("> " if times.limited else "") + f"{times.median_s:.2f}" + ("*" if times.disturbed else "")


def _unmatched_cells(summary: Summary) -> list[list[str]]:
    return [
        [
            row.op,
            textwrap.shorten(f"{row.kind}: {row.reason}", 100, placeholder=" ..."),
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
        f"one thread each, sum over {count} ops: C++ {totals['cpp_1_s']:.1f} s, gradcheck {totals['ours_1_s']:.1f} s, "
        f"ratio {totals['ratio_1']:.2f} (processor time {totals['cpu_ratio']:.2f}); geometric mean of the ratios "
        f"{totals['mean_ratio_1']:.2f} ({totals['mean_cpu_ratio']:.2f}); "
        f"gradcheck is faster in {totals['faster_1']:.0f}"
    ]
    if "ratio_all" in totals:
        lines.append(
            f"C++ as it comes against -j2, sum over {totals['ops_all']:.0f} ops: C++ {totals['cpp_all_s']:.1f} s, "
            f"gradcheck {totals['ours_2_s']:.1f} s, ratio {totals['ratio_all']:.2f}; geometric mean "
            f"{totals['mean_ratio_all']:.2f}; gradcheck is faster in {totals['faster_all']:.0f}"
        )
    lines.append(
        "verdicts, C++ / gradcheck: " + ", ".join(f"{key}: {n}" for key, n in summary.verdicts().most_common())
    )
    if any(times.disturbed for row in summary.rows for times in row.times.values()):
        lines.append("\\* other programs took more than a fifth of the processors in every round")
    return lines


def _markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rule = ["---" if name in _LEFT else "---:" for name in head]
    lines = [head, rule, *([cell.replace("|", "\\|") for cell in cells] for cells in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))
