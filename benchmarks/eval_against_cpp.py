"""The eval cases with ggml's C++ tool and with gradcheck, op by op, in turns: how long does each take?

    python benchmarks/eval_against_cpp.py --backend CPU --output eval.md

Both compare the device with the CPU, over the same cases. An op is a process of each tool, and a start of gradcheck
takes longer than one of the C++ tool; `inside` leaves the starts out.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
class Row:
    """One op: seconds of the C++ tool and of gradcheck with one and with two workers.

    inside_s: what the cases took with one worker, without the start
    """

    op: str
    cases: int
    cpp_cases: int
    cpp_s: float
    cpp_cpu_s: float
    ours_s: float
    ours_cpu_s: float
    inside_s: float
    ours_2_s: float

    @property
    def ratio(self) -> float:
        """Wall time of the C++ tool over ours with one worker: above 1, gradcheck is faster."""
        return self.cpp_s / self.ours_s


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
        row = measure(op, options.backend, cpp, options.op_timeout)
        if isinstance(row, Row):
            rows.append(row)
            console.print(_line(row), markup=False)
        else:
            left_out.append(f"{op}: {row}")
            console.print(left_out[-1], markup=False)
    report = render(rows, left_out, options.backend)
    console.print(report, markup=False)
    for path in options.output:
        path.write_text(report)
    return 0


def measure(op: str, backend: str, cpp: Path, limit_s: float) -> Row | str:
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
    one, two = (timed([*command, f"-j{workers}"], limit_s) for workers in (1, 2))
    if one.code is None or two.code is None:
        return f"gradcheck took more than {limit_s:g} s"
    if one.code == 2:
        return one.stderr.strip().splitlines()[-1]
    results = json.loads(one.stdout)["results"]
    return Row(
        op=op,
        cases=len(results),
        cpp_cases=len(names),
        cpp_s=theirs.wall_s,
        cpp_cpu_s=theirs.cpu_s,
        ours_s=one.wall_s,
        ours_cpu_s=one.cpu_s,
        inside_s=sum(float(result["elapsed_s"]) for result in results),
        ours_2_s=two.wall_s,
    )


def render(rows: Sequence[Row], left_out: Sequence[str], backend: str) -> str:
    """Totals and the ops at which gradcheck is slowest, as Markdown."""
    if not rows:
        return "nothing was measured\n"
    sums = {name: sum(getattr(row, name) for row in rows) for name in Row.__slots__ if name.endswith("_s")}
    lines = [
        f"{backend}, {processor_name()}, {processors()} processors; {len(rows)} ops, "
        f"{sum(row.cases for row in rows)} cases (C++: {sum(row.cpp_cases for row in rows)}).",
        "",
        f"Wall time: C++ {sums['cpp_s']:.0f} s (all processors), gradcheck {sums['ours_s']:.0f} s with -j1 "
        f"({sums['inside_s']:.0f} s inside the cases), {sums['ours_2_s']:.0f} s with -j2. "
        f"Processor time: C++ {sums['cpp_cpu_s']:.0f} s, gradcheck {sums['ours_cpu_s']:.0f} s.",
        "",
        "| op | cases | C++ | -j1 | inside | -j2 | C++ / -j1 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in sorted(rows, key=lambda row: row.cpp_s / row.inside_s)[:SLOWEST]:
        lines.append(
            f"| {row.op} | {row.cases} | {row.cpp_s:.2f} | {row.ours_s:.2f} | {row.inside_s:.2f} "
            f"| {row.ours_2_s:.2f} | {row.ratio:.2f} |"
        )
    if left_out:
        lines += ["", "Not measured: " + "; ".join(left_out)]
    return "\n".join(lines) + "\n"


def _ops() -> list[str]:
    sample = timed([*GRADCHECK, "list", "--ops", "--mode", "eval", "--format", "jsonl"], 120)
    return [json.loads(line)["op"] for line in sample.stdout.splitlines()]


def _line(row: Row) -> str:
    return (
        f"{row.op}: {row.cases} cases, C++ {row.cpp_s:.2f} s (cpu {row.cpp_cpu_s:.2f}), -j1 {row.ours_s:.2f} s "
        f"(cpu {row.ours_cpu_s:.2f}, inside {row.inside_s:.2f}), -j2 {row.ours_2_s:.2f} s"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="eval_against_cpp.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpp", type=Path, metavar="PATH", help="a built test-backend-ops; else it is built here")
    parser.add_argument("--backend", default="CPU", metavar="DEVICE", help="the device, by ggml's name (CPU)")
    parser.add_argument("--op", nargs="+", action="extend", default=[], metavar="OP", help="only these ops")
    parser.add_argument("--op-timeout", type=float, default=600.0, metavar="S", help="limit of a process (600)")
    parser.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help="a Markdown file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
