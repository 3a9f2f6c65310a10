"""The same perf cases with ggml's C++ tool and with gradcheck: do both measure the same time?

    python benchmarks/perf_against_cpp.py --rounds 5 --output table.md

Each case runs in turns in a process of either tool, on the CPU backend with equally many threads.
"""

import argparse
import importlib.metadata
import json
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks.cpp_tool import BuildFailed, build, parse_perf_log  # noqa: E402
from benchmarks.perf_cases import PERF_CASES  # noqa: E402
from benchmarks.processes import processor_name, processors, timed, wait_for_quiet  # noqa: E402

GRADCHECK = (sys.executable, "-m", "gradcheck")
CACHE = ROOT / "benchmarks" / ".cache"
LIMIT_S = 300.0
_HEAD = ("case", "C++", "gradcheck", "ratio", "of means", "lowest / highest", "busy")


@dataclass(frozen=True, slots=True)
class Pair:
    """One round of a case: the C++ tool's mean, our median and mean; `foreign`: what others took of the processors."""

    cpp_s: float
    ours_s: float
    ours_mean_s: float
    foreign: float


@dataclass(frozen=True, slots=True)
class Row:
    """All rounds of a case."""

    case_id: str
    pairs: tuple[Pair, ...]

    @property
    def cpp_s(self) -> float:
        return statistics.median(pair.cpp_s for pair in self.pairs)

    @property
    def ours_s(self) -> float:
        return statistics.median(pair.ours_s for pair in self.pairs)

    @property
    def ratios(self) -> list[float]:
        """Our median to the C++ tool's mean, round by round: what changes slowly on the machine cancels."""
        return [pair.ours_s / pair.cpp_s for pair in self.pairs]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def mean_ratio(self) -> float:
        """The same with our mean, which others disturb as they do the C++ tool's."""
        return statistics.median(pair.ours_mean_s / pair.cpp_s for pair in self.pairs)

    @property
    def foreign(self) -> float:
        return statistics.median(pair.foreign for pair in self.pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where something is missing, 1 where the median ratio is further from 1 than --within."""
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    cpp = options.cpp
    try:
        cpp = cpp or build(CACHE)
    except BuildFailed as problem:
        errors.print(f"perf_against_cpp: {problem}")
        return 2
    if not cpp.is_file():
        errors.print(f"perf_against_cpp: {cpp}: no such tool")
        return 2
    chosen = [case for case in PERF_CASES if not options.op or case.partition("(")[0] in options.op]
    if not chosen:
        errors.print(f"perf_against_cpp: no case of {', '.join(options.op)}")
        return 2
    began = time.monotonic()
    rows = _measure(cpp.resolve(), chosen, options, errors)
    facts = _facts(options, arguments if arguments is not None else sys.argv[1:], time.monotonic() - began)
    _print(rows, console)
    for path in options.output:
        path.write_text(_json(rows, facts) if path.suffix == ".json" else _markdown(rows, facts))
    return 0 if options.within is None or abs(_total(rows)[0] - 1) <= options.within else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perf_against_cpp.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpp", type=Path, metavar="PATH", help="a built test-backend-ops; else it is built here")
    parser.add_argument("--op", nargs="+", action="extend", default=[], metavar="OP", help="only these ops")
    parser.add_argument("--rounds", type=int, choices=range(1, 100), default=5, metavar="N", help="rounds (5)")
    parser.add_argument("--threads", type=int, choices=range(1, 1025), default=1, metavar="N", help="CPU threads (1)")
    parser.add_argument("--budget", type=float, default=1.0, metavar="S", help="seconds of samples (1, as C++)")
    parser.add_argument("--quiet-wait", type=float, default=1.0, metavar="S", help="wait for a quiet machine (1)")
    parser.add_argument("--within", type=float, metavar="SHARE", help="fail where the median ratio is further from 1")
    parser.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help="FILE.md or FILE.json")
    return parser


def _measure(cpp: Path, chosen: Sequence[str], options: argparse.Namespace, errors: Console) -> list[Row]:
    """Rounds over all cases; within a case the tools take turns in who is first."""
    pairs: dict[str, list[Pair]] = {case: [] for case in chosen}
    for number in range(options.rounds):
        for index, case in enumerate(chosen):
            wait_for_quiet(options.quiet_wait)
            pair = _pair(cpp, case, options, ours_first=(number + index) % 2 == 1)
            pairs[case].append(pair)
            errors.print(f"[{index + 1}/{len(chosen)}] {case}: {pair.ours_s / pair.cpp_s:.3f}")
        errors.print(f"round {number + 1} of {options.rounds}: median ratio {_total(_rows(pairs))[0]:.3f}")
    return _rows(pairs)


def _rows(pairs: dict[str, list[Pair]]) -> list[Row]:
    return [Row(case, tuple(found)) for case, found in pairs.items()]


def _pair(cpp: Path, case: str, options: argparse.Namespace, *, ours_first: bool) -> Pair:
    ours: tuple[float, float, float] | None = _ours(case, options) if ours_first else None
    # It has no option for threads and asks for one a processor; OpenMP's limit makes them fewer.
    sample = timed([str(cpp), "perf", "-b", "CPU", "-o", case], LIMIT_S, {"OMP_THREAD_LIMIT": str(options.threads)})
    found = parse_perf_log(sample.stdout)
    if sample.code != 0 or case not in found:
        raise RuntimeError(f"the C++ tool ended with {sample.code} and no time of {case}: {sample.stderr[-800:]}")
    median, mean, foreign = ours or _ours(case, options)
    return Pair(found[case].mean_s, median, mean, max(foreign, sample.foreign))


def _ours(case: str, options: argparse.Namespace) -> tuple[float, float, float]:
    wanted = ("--threads", str(options.threads), "--budget", str(options.budget), "-o", case)
    sample = timed([*GRADCHECK, "perf", "-b", "cpu", "--format", "json", *wanted], LIMIT_S)
    if sample.code != 0:
        raise RuntimeError(f"gradcheck ended with {sample.code} on {case}: {sample.stderr[-800:]}")
    (result,) = json.loads(sample.stdout)["results"]
    samples = result["outcome"]["samples"]
    return statistics.median(samples), statistics.fmean(samples), sample.foreign


def _facts(options: argparse.Namespace, arguments: Sequence[str], elapsed_s: float) -> dict[str, str]:
    return {
        "command": f"`python benchmarks/perf_against_cpp.py {shlex.join(arguments)}`".replace(" `", "`"),
        "machine": f"{processor_name()}, {processors()} processors, {platform.system()} {platform.release()}",
        "versions": f"ggml-python {importlib.metadata.version('ggml-python')}, Python {platform.python_version()}",
        "threads": f"{options.threads} (C++: OMP_THREAD_LIMIT, gradcheck: --threads)",
        "rounds": f"{options.rounds}, each case in turns; the whole took {elapsed_s:.0f} s",
    }


def _total(rows: Sequence[Row]) -> tuple[float, float]:
    """The median over the cases of the ratio, and of the ratio of means."""
    return statistics.median(row.ratio for row in rows), statistics.median(row.mean_ratio for row in rows)


def _cells(row: Row) -> list[str]:
    return [
        row.case_id,
        f"{row.cpp_s * 1e6:,.2f}",
        f"{row.ours_s * 1e6:,.2f}",
        f"{row.ratio:.3f}",
        f"{row.mean_ratio:.3f}",
        f"{min(row.ratios):.2f} / {max(row.ratios):.2f}",
        f"{row.foreign:.0%}",
    ]


def _closing(rows: Sequence[Row]) -> str:
    ratio, mean_ratio = _total(rows)
    near = sum(abs(row.ratio - 1) <= 0.03 for row in rows)
    return (
        f"{len(rows)} cases: median ratio {ratio:.3f}, of means {mean_ratio:.3f}; {near} within 3 per cent; "
        "microseconds of one computation; a ratio below 1 means that gradcheck reports less"
    )


def _print(rows: Sequence[Row], console: Console) -> None:
    table = Table()
    for name in _HEAD:
        table.add_column(name, justify="left" if name == "case" else "right", no_wrap=name != "case", overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in _cells(row)))
    console.print(table)
    console.print(_closing(rows))


def _markdown(rows: Sequence[Row], facts: dict[str, str]) -> str:
    lines = [_HEAD, ["---" if name == "case" else "---:" for name in _HEAD], *map(_cells, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    told = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return f"{told}\n\n{table}\n\n{_closing(rows)}\n"


def _json(rows: Sequence[Row], facts: dict[str, str]) -> str:
    ratio, mean_ratio = _total(rows)
    record: dict[str, Any] = {"facts": facts, "median_ratio": ratio, "median_mean_ratio": mean_ratio}
    record["rows"] = [{**asdict(row), "ratio": row.ratio, "mean_ratio": row.mean_ratio} for row in rows]
    return json.dumps(record, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main())
