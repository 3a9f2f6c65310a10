"""Both tools on the same grad cases of an op, in turns, and what came of it."""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cpp_tool import CppLog, Verdict, parse_log
from benchmarks.processes import Sample, timed, wait_for_quiet

GRADCHECK = (sys.executable, "-m", "gradcheck")
DISTURBED = 0.2
TOGETHER = 4  # times the time limit of an op, for all of them in one process
_FINISHED = (0, 1, 3)  # gradcheck's exit codes of a run that went to its end
_NO_BACKTRACE = {"GGML_NO_BACKTRACE": "1"}  # an abort would start gdb
_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}  # the tool has no option for it; it asks OpenMP for one a processor
CPP_1, OURS_1, CPP_ALL, OURS_2 = COMMANDS = ("cpp_1", "ours_1", "cpp_all", "ours_2")  # in the order of a round


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
    """What one command took; a median counts the runs that others did not disturb, if there are any."""

    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    foreign: tuple[float, ...]
    limited: bool  # the time limit ended a run

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Times":
        """The times of these runs."""
        walls, cpus, foreign = zip(*((s.wall_s, s.cpu_s, s.foreign) for s in samples), strict=True)
        return cls(walls, cpus, foreign, any(s.code is None for s in samples))

    @property
    def disturbed(self) -> bool:
        return min(self.foreign) >= DISTURBED

    @property
    def median_s(self) -> float:
        return self._median(self.wall_s)

    @property
    def median_cpu_s(self) -> float:
        return self._median(self.cpu_s)

    def _median(self, values: Sequence[float]) -> float:
        kept = [v for v, foreign in zip(values, self.foreign, strict=True) if foreign < DISTURBED or self.disturbed]
        return statistics.median(kept)


@dataclass(frozen=True, slots=True)
class OpRow:
    """An op that both tools finished."""

    op: str
    selection: str  # what `-o` of the C++ tool takes
    ids: dict[str, Verdict]  # the shared cases, with the verdict of the C++ tool
    cpp_cases: int  # all that its log names
    our_cases: int  # all that gradcheck has
    elements: int
    judged: int
    times: Mapping[str, Times]
    outside: float  # share of the -j1 process that is not inside a case
    verdicts: dict[str, int]  # "OK / PASS": how many cases

    @property
    def ratio_1(self) -> float:
        """Wall time, one thread each; above 1, gradcheck is faster."""
        return self.times[CPP_1].median_s / self.times[OURS_1].median_s

    @property
    def cpu_ratio(self) -> float:
        """The same for processor time, which other programs hardly change."""
        return self.times[CPP_1].median_cpu_s / self.times[OURS_1].median_cpu_s

    @property
    def ratio_all(self) -> float | None:
        """Wall time, the C++ tool as it comes against -j2; None where the time limit ended it."""
        cpp = self.times[CPP_ALL]
        return None if cpp.limited else cpp.median_s / self.times[OURS_2].median_s


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
    first = _run(CPP_1, op, (), plan)
    log = parse_log(first.stdout, first.stderr)
    shared = [case_id for case_id in plan.ids[op] if case_id in log.compared]
    kind, reason = _what_stopped(first, log, plan, len(shared))
    if kind:
        ours = _run(OURS_1, op, shared, plan) if shared else None
        time_s = ours.wall_s if ours and ours.code is not None else None
        return Unmatched(op, kind, reason, len(log.compared), first.wall_s, len(plan.ids[op]), time_s)
    alone = len(shared) == len(log.compared)  # then `-o OP` does nothing but the shared cases
    selection = op if alone else ",".join(shared)
    samples = _rounds(selection, shared, plan, [first] if alone else [])
    if samples[OURS_1][-1].code is None:
        return Unmatched(op, "time limit", "gradcheck -j1", len(log.compared), first.wall_s, len(plan.ids[op]))
    ids = {case_id: log.compared[case_id] for case_id in shared}
    return _row(op, selection, ids, (len(log.cases), len(plan.ids[op])), samples)


def compare_together(rows: Sequence[OpRow], plan: Plan) -> OpRow | None:
    """All these ops in one process of each tool, so that a start counts once; None where that takes too long."""
    ids = {case_id: verdict for row in rows for case_id, verdict in row.ids.items()}
    selection = ",".join(row.selection for row in rows)
    samples = _rounds(selection, list(ids), replace(plan, op_timeout_s=plan.op_timeout_s * TOGETHER), [])
    if samples[OURS_1][-1].code is None or samples[CPP_1][-1].code is None:
        return None
    counts = (sum(row.cpp_cases for row in rows), sum(row.our_cases for row in rows))
    return _row(f"these {len(rows)} together", selection, ids, counts, samples)


def _rounds(selection: str, ids: Sequence[str], plan: Plan, first: list[Sample]) -> dict[str, list[Sample]]:
    """The runs of each command, in turns. One that hit the time limit is not run again."""
    samples: dict[str, list[Sample]] = {name: [] for name in COMMANDS}
    samples[CPP_1] += first
    for number in range(plan.rounds):
        for name in COMMANDS:
            if len(samples[name]) > number or any(s.code is None for s in samples[name]):
                continue
            wait_for_quiet(plan.patience_s)
            samples[name].append(_run(name, selection, ids, plan))
    return samples


def _row(
    op: str, selection: str, ids: dict[str, Verdict], counts: tuple[int, int], samples: Mapping[str, list[Sample]]
) -> OpRow:
    results = _results(samples[OURS_1][-1])
    return OpRow(
        op=op,
        selection=selection,
        ids=ids,
        cpp_cases=counts[0],
        our_cases=counts[1],
        elements=sum(dict(r["outcome"]["counts"]).get("elements", 0) for r in results),
        judged=sum(dict(r["outcome"]["counts"]).get("judged", 0) for r in results),
        times={name: Times.of(taken) for name, taken in samples.items()},
        outside=statistics.median(_outside(sample) for sample in samples[OURS_1] if sample.code is not None),
        verdicts=dict(Counter(f"{ids[r['case_id']]} / {r['status']}" for r in results)),
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


def _run(name: str, selection: str, ids: Sequence[str], plan: Plan) -> Sample:
    if name in (CPP_1, CPP_ALL):
        env = _NO_BACKTRACE | (_ONE_THREAD if name == CPP_1 else {})
        return timed([str(plan.cpp), "grad", "-b", "CPU", "-o", selection], plan.op_timeout_s, env)
    chosen = [word for case_id in ids for word in ("-o", case_id)]
    jobs = "-j1" if name == OURS_1 else "-j2"
    sample = timed([*GRADCHECK, "grad", "-b", "cpu", jobs, "--format", "json", *chosen], plan.op_timeout_s)
    if sample.code is not None and sample.code not in _FINISHED:
        raise RuntimeError(f"gradcheck ended with {sample.code} on {len(ids)} cases: {sample.stderr[-800:]}")
    return sample


def _results(sample: Sample) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(sample.stdout)["results"]
    return found


def _outside(sample: Sample) -> float:
    inside = sum(float(result["elapsed_s"]) for result in _results(sample))
    return max(0.0, 1 - inside / sample.wall_s)
