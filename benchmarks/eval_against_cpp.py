"""The eval cases with ggml's C++ tool and with gradcheck, op by op, in turns: how long does each take?

    python benchmarks/eval_against_cpp.py --backend CPU --output eval.md

Both compare the device with the CPU, over the same cases. An op is a process of each tool, and a start of gradcheck
takes longer than one of the C++ tool: about a second against a tenth.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from benchmarks.cpp_tool import BuildFailed, build, parse_names  # noqa: E402
from benchmarks.processes import processor_name, processors, timed  # noqa: E402

CACHE = ROOT / "benchmarks" / ".cache"
GRADCHECK = (sys.executable, "-m", "gradcheck")
#: Cases that the C++ tool does not have carry this variable first.
OURS_ALONE = "^(?!form=)"
SLOWEST = 10


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one process; inside_s: what the cases took, summed, without the start."""

    wall_s: float
    cpu_s: float
    inside_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """One op: the C++ tool, and gradcheck by its number of workers."""

    op: str
    cases: int
    cpp_cases: int
    cpp: Times
    ours: dict[int, Times]

    @property
    def ratio(self) -> float:
        """Wall time of the C++ tool over ours inside the cases, with the fewest workers; above 1: ours is shorter."""
        return self.cpp.wall_s / self.ours[min(self.ours)].inside_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where something is missing."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        cpp = options.cpp or build(CACHE)
    except BuildFailed as problem:
        console.print(f"eval_against_cpp: {problem}", markup=False)
        return 2
    wanted = [op for text in options.op for op in text.split(",")] or _ops()
    rows, left_out = [], []
    for op in wanted:
        row = measure(op, options.backend, cpp, options.workers, options.op_timeout)
        if isinstance(row, Row):
            rows.append(row)
            print(_line(row), flush=True)
        else:
            left_out.append(f"{op}: {row}")
            print(left_out[-1], flush=True)
    report = render(rows, left_out, options.backend)
    console.print(report, markup=False)
    for path in options.output:
        path.write_text(report)
    return 0


def measure(op: str, backend: str, cpp: Path, workers: Sequence[int], limit_s: float) -> Row | str:
    """The times of one op, or why there are none."""
    theirs = timed([str(cpp), "test", "-b", backend, "-o", op], limit_s, {"GGML_NO_BACKTRACE": "1"})
    if theirs.code is None:
        return f"the C++ tool took more than {limit_s:g} s"
    names = parse_names(theirs.stdout, op)
    if not names:
        return "the C++ tool has no case"
    if theirs.code not in (0, 1):
        return f"the C++ tool ended with {theirs.code} after {len(names)} cases"
    command = [*GRADCHECK, "eval", "-b", backend, "--reference", "CPU", "-o", op, "-p", OURS_ALONE, "--format", "json"]
    ours: dict[int, Times] = {}
    results: list[dict[str, Any]] = []
    for count in workers:
        sample = timed([*command, f"-j{count}"], limit_s)
        if sample.code is None:
            return f"gradcheck -j{count} took more than {limit_s:g} s"
        if sample.code == 2:
            return sample.stderr.strip().splitlines()[-1]
        results = json.loads(sample.stdout)["results"]
        inside = sum(float(result["elapsed_s"]) for result in results)
        ours[count] = Times(sample.wall_s, sample.cpu_s, inside)
    return Row(op, len(results), len(names), Times(theirs.wall_s, theirs.cpu_s, theirs.wall_s), ours)


def render(rows: Sequence[Row], left_out: Sequence[str], backend: str) -> str:
    """Totals and the ops at which gradcheck is slowest, as Markdown."""
    if not rows:
        return "nothing was measured\n"
    workers = sorted(rows[0].ours)
    lines = [
        f"{backend}, {processor_name()}, {processors()} processors; {len(rows)} ops, "
        f"{sum(row.cases for row in rows)} cases (C++: {sum(row.cpp_cases for row in rows)}).",
        "",
        "| | wall | processor time | inside the cases |",
        "| --- | ---: | ---: | ---: |",
        _total("C++", [row.cpp for row in rows]),
        *(_total(f"-j{count}", [row.ours[count] for row in rows]) for count in workers),
        "",
        f"The {SLOWEST} ops at which gradcheck takes most beside the C++ tool:",
        "",
        "| op | cases | C++ | "
        + " | ".join(f"-j{count}" for count in workers)
        + " | C++ cpu | -j1 cpu | -j1 inside | C++ / inside |",
        "| --- |" + " ---: |" * (6 + len(workers)),
    ]
    for row in sorted(rows, key=lambda row: row.ratio)[:SLOWEST]:
        walls = " | ".join(f"{row.ours[count].wall_s:.2f}" for count in workers)
        least = row.ours[workers[0]]
        lines.append(
            f"| {row.op} | {row.cases} | {row.cpp.wall_s:.2f} | {walls} | {row.cpp.cpu_s:.2f} | {least.cpu_s:.2f} "
            f"| {least.inside_s:.2f} | {row.ratio:.2f} |"
        )
    if left_out:
        lines += ["", "Not measured: " + "; ".join(left_out)]
    return "\n".join(lines) + "\n"


def _total(name: str, times: Sequence[Times]) -> str:
    sums = (sum(getattr(one, field) for one in times) for field in Times.__slots__)
    return f"| {name} | " + " | ".join(f"{value:.0f} s" for value in sums) + " |"


def _ops() -> list[str]:
    sample = timed([*GRADCHECK, "list", "--ops", "--mode", "eval", "--format", "jsonl"], 120)
    return [json.loads(line)["op"] for line in sample.stdout.splitlines()]


def _line(row: Row) -> str:
    ours = "; ".join(
        f"-j{n} {t.wall_s:.2f} s (cpu {t.cpu_s:.2f}, inside {t.inside_s:.2f})" for n, t in row.ours.items()
    )
    return f"{row.op}: {row.cases} cases; C++ {row.cpp.wall_s:.2f} s (cpu {row.cpp.cpu_s:.2f}); {ours}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="eval_against_cpp.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpp", type=Path, metavar="PATH", help="a built test-backend-ops; else it is built here")
    parser.add_argument("--backend", default="CPU", metavar="DEVICE", help="the device, by ggml's name (CPU)")
    parser.add_argument("--op", nargs="+", action="extend", default=[], metavar="OP", help="only these ops")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N", help="-j of gradcheck (1 2)")
    parser.add_argument("--op-timeout", type=float, default=600.0, metavar="S", help="limit of a process (600)")
    parser.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help="a Markdown file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
