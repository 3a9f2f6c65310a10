"""Both tools on the same grad cases of an op, in turns, and what came of it."""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cpp_tool import CppLog, Verdict, parse_log
from benchmarks.processes import Sample, timed, wait_for_quiet

GRADCHECK = (sys.executable, "-m", "gradcheck")
DISTURBED = 0.2
_FINISHED = (0, 1, 3)  # gradcheck's exit codes of a run that went to its end
_NO_BACKTRACE = {"GGML_NO_BACKTRACE": "1"}  # an abort would start gdb


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure: the C++ tool, the ids gradcheck has by op, and the limits."""

    cpp: Path
    ids: dict[str, list[str]]
    rounds: int
    op_timeout_s: float
    patience_s: float


@dataclass(frozen=True, slots=True)
class Times:
    """The wall times of one command; the median counts those that others did not disturb, if there are any."""

    wall_s: tuple[float, ...]
    foreign: tuple[float, ...]

    @property
    def quiet(self) -> tuple[float, ...]:
        return tuple(t for t, foreign in zip(self.wall_s, self.foreign, strict=True) if foreign < DISTURBED)

    @property
    def median_s(self) -> float:
        return statistics.median(self.quiet or self.wall_s)


@dataclass(frozen=True, slots=True)
class OpRow:
    """An op that both tools finished."""

    op: str
    cases: int
    cpp_cases: int  # all that its log names
    our_cases: int  # all that gradcheck has
    elements: int
    judged: int
    cpp: Times
    j1: Times
    j2: Times
    outside: float  # share of the -j1 process that is not inside a case
    verdicts: dict[str, int] = field(default_factory=dict)  # "OK / PASS": how many cases

    @property
    def disturbed(self) -> bool:
        return not (self.cpp.quiet and self.j1.quiet and self.j2.quiet)

    @property
    def ratio_j1(self) -> float:
        return self.cpp.median_s / self.j1.median_s

    @property
    def ratio_j2(self) -> float:
        return self.cpp.median_s / self.j2.median_s


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An op without a ratio: why, what the C++ tool had compared by then, and our time for those cases."""

    op: str
    kind: str  # abort, time limit, nothing compared, no case
    reason: str
    compared: int
    cpp_s: float
    our_cases: int
    ours_s: float | None = None


def our_ids() -> dict[str, list[str]]:
    """The ids of gradcheck's grad cases by op."""
    sample = timed([*GRADCHECK, "list", "--mode", "grad", "--format", "jsonl"], 120)
    if sample.code != 0:
        raise RuntimeError(f"gradcheck list ended with {sample.code}: {sample.stderr}")
    found: dict[str, list[str]] = {}
    for line in sample.stdout.splitlines():
        record = json.loads(line)
        found.setdefault(record["op"], []).append(f"{record['op']}({record['vars']})")
    return found


def compare_op(op: str, plan: Plan) -> OpRow | Unmatched:
    """Measure one op. The first run of the C++ tool also tells which cases there are."""
    wait_for_quiet(plan.patience_s)
    first = _run_cpp(plan, op)
    log = parse_log(first.stdout, first.stderr)
    compared = log.compared
    shared = [case_id for case_id in plan.ids[op] if case_id in compared]
    kind, reason = _what_stopped(first, log, plan, len(shared))
    if kind:
        ours = _run_ours(shared, 1, plan) if shared else None
        time_s = ours.wall_s if ours and ours.code is not None else None
        return Unmatched(op, kind, reason, len(compared), first.wall_s, len(plan.ids[op]), time_s)
    alone = len(shared) == len(compared)  # then `-o OP` does nothing but the shared cases
    samples: dict[str, list[Sample]] = {"cpp": [first] if alone else [], "1": [], "2": []}
    selection = op if alone else ",".join(shared)
    for _ in range(plan.rounds):
        for who, taken in samples.items():
            if who == "cpp" and len(taken) > len(samples["1"]):
                continue
            wait_for_quiet(plan.patience_s)
            sample = _run_cpp(plan, selection) if who == "cpp" else _run_ours(shared, int(who), plan)
            if sample.code is None:
                whose = "test-backend-ops" if who == "cpp" else f"gradcheck -j{who}"
                return Unmatched(op, "time limit", whose, len(compared), first.wall_s, len(plan.ids[op]))
            taken.append(sample)
    results = [result for sample in samples["1"][-1:] for result in json.loads(sample.stdout)["results"]]
    return OpRow(
        op=op,
        cases=len(shared),
        cpp_cases=len(log.cases),
        our_cases=len(plan.ids[op]),
        elements=_total("elements", results),
        judged=_total("judged", results),
        cpp=_times(samples["cpp"]),
        j1=_times(samples["1"]),
        j2=_times(samples["2"]),
        outside=statistics.median(_outside(sample) for sample in samples["1"]),
        verdicts=dict(Counter(f"{compared[r['case_id']]} / {r['status']}" for r in results)),
    )


def _what_stopped(first: Sample, log: CppLog, plan: Plan, shared: int) -> tuple[str, str]:
    if first.code is None:
        return "time limit", f"more than {plan.op_timeout_s:g} s"
    if first.code not in (0, 1):
        return "abort", log.abort or f"ended with {first.code}"
    if not log.cases:
        return "no case", "its log names no case of this op"
    if not shared:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in log.count().most_common())
        return "nothing compared", counts
    return "", ""


def _run_cpp(plan: Plan, selection: str) -> Sample:
    return timed([str(plan.cpp), "grad", "-b", "CPU", "-o", selection], plan.op_timeout_s, _NO_BACKTRACE)


def _run_ours(ids: Sequence[str], jobs: int, plan: Plan) -> Sample:
    chosen = [word for case_id in ids for word in ("-o", case_id)]
    command = [*GRADCHECK, "grad", "-b", "cpu", f"-j{jobs}", "--format", "json", *chosen]
    sample = timed(command, plan.op_timeout_s)
    if sample.code is not None and sample.code not in _FINISHED:
        raise RuntimeError(f"gradcheck ended with {sample.code} on {len(ids)} cases: {sample.stderr[-800:]}")
    return sample


def _times(samples: Iterable[Sample]) -> Times:
    taken = list(samples)
    return Times(tuple(s.wall_s for s in taken), tuple(s.foreign for s in taken))


def _outside(sample: Sample) -> float:
    inside = sum(result["elapsed_s"] for result in json.loads(sample.stdout)["results"])
    return max(0.0, 1 - inside / sample.wall_s)


def _total(name: str, results: Iterable[dict[str, object]]) -> int:
    total = 0
    for result in results:
        outcome = result["outcome"]
        assert isinstance(outcome, dict)
        total += dict(outcome["counts"]).get(name, 0)
    return total


def fails(rows: Iterable[OpRow], verdict: Verdict) -> int:
    """How many shared cases had this verdict of the C++ tool."""
    return sum(n for row in rows for key, n in row.verdicts.items() if key.startswith(f"{verdict} /"))
