"""The same grad cases with ggml's C++ tool and with gradcheck, op by op: which is faster, and by how much?

    python benchmarks/against_cpp.py --op SILU,ADD --rounds 3 --output table.md

Every run is a whole process, on the CPU backend. gradcheck runs only the cases that the C++ tool really compares.
"""

import argparse
import importlib.metadata
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from benchmarks.comparison import GRADCHECK, OpRow, Plan, Unmatched, compare_op, compare_together, our_ids  # noqa: E402
from benchmarks.cpp_tool import BuildFailed, build  # noqa: E402
from benchmarks.processes import Sample, processor_name, processors, timed  # noqa: E402
from benchmarks.summary import Summary, print_summary, render_json, render_markdown  # noqa: E402

CACHE = ROOT / "benchmarks" / ".cache"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where something is missing."""
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        cpp = options.cpp or build(CACHE)
    except BuildFailed as problem:
        errors.print(f"against_cpp: {problem}", markup=False)
        return 2
    if not cpp.is_file():
        errors.print(f"against_cpp: {cpp}: no such tool", markup=False)
        return 2
    ids = our_ids()
    wanted = [op for text in options.op for op in text.split(",")] or list(ids)
    unknown = [op for op in wanted if op not in ids]
    if unknown:
        errors.print(f"against_cpp: gradcheck has no grad case of {', '.join(unknown)}", markup=False)
        return 2
    plan = Plan(cpp.resolve(), ids, options.rounds, options.op_timeout, options.quiet_wait)
    facts = _facts(plan, arguments if arguments is not None else sys.argv[1:])
    summary = _measure(wanted, plan, facts, errors)
    print_summary(summary, console)
    for path in options.output:
        path.write_text(render_json(summary) if path.suffix == ".json" else render_markdown(summary))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="against_cpp.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpp", type=Path, metavar="PATH", help="a built test-backend-ops; else it is built here")
    parser.add_argument("--op", nargs="+", action="extend", default=[], metavar="OP", help="only these ops")
    parser.add_argument("--rounds", type=_positive, default=3, metavar="N", help="runs of each, in turns (3)")
    parser.add_argument("--op-timeout", type=float, default=120.0, metavar="S", help="time limit of a process (120)")
    parser.add_argument("--quiet-wait", type=float, default=3.0, metavar="S", help="wait for a quiet machine (3)")
    parser.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help="FILE.md or FILE.json")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _measure(wanted: Sequence[str], plan: Plan, facts: dict[str, str], errors: Console) -> Summary:
    rows: list[OpRow] = []
    unmatched: list[Unmatched] = []
    began = time.monotonic()
    for number, op in enumerate(wanted, 1):
        found = compare_op(op, plan)
        if isinstance(found, OpRow):
            rows.append(found)
            text = ", ".join(f"{name} {times.median_s:.2f} s" for name, times in found.times.items())
        else:
            unmatched.append(found)
            text = f"{found.kind}: {found.reason}"
        errors.print(f"[{number}/{len(wanted)}] {op}: {text}", markup=False)
    together = compare_together(rows, plan) if len(rows) > 1 else None
    facts["whole measurement"] = f"{time.monotonic() - began:.0f} s"
    return Summary(facts, tuple(rows), together, tuple(unmatched))


def _facts(plan: Plan, arguments: Sequence[str]) -> dict[str, str]:
    start_cpp = timed([str(plan.cpp), "grad", "-b", "CPU", "-o", "NO_SUCH_OP"], 60)
    start_ours = timed([*GRADCHECK, "--version"], 60)
    return {
        "command": f"`python benchmarks/against_cpp.py {shlex.join(arguments)}`".replace(" `", "`"),
        "machine": f"{processor_name()}, {processors()} processors, {platform.system()} {platform.release()}",
        "versions": f"ggml-python {importlib.metadata.version('ggml-python')}, "
        f"gradcheck {importlib.metadata.version('gradcheck')}, Python {platform.python_version()}, "
        f"NumPy {importlib.metadata.version('numpy')}",
        "rounds": f"{plan.rounds}, in turns, medians; time limit of a process {plan.op_timeout_s:g} s",
        "threads": f"`C++` has one (OMP_THREAD_LIMIT=1), `C++ all` its default, one a processor ({processors()}); "
        "`-j1` and `-j2` are gradcheck with one and two cases at a time, each on one thread",
        "cases": "those that both compare (in the C++ log, of gradcheck)",
        "outside": "the share of `-j1` before, between and after the cases",
        "a start without any case": f"C++ {_wall(start_cpp)}, `gradcheck --version` {_wall(start_ours)}",
    }


def _wall(sample: Sample) -> str:
    return f"{sample.wall_s:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
