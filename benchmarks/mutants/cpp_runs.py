"""The C++ tool on the mutated library: does it fail or abort where it does not without the mutant?

Its inputs differ from run to run, so it runs several times, and a mutant counts as caught if any run sees it. Each op
has a process of its own, since an abort ends all that would come after it. It has one thread, but for mutants of the
kind `threads`: OpenMP's threads spin, which on a busy machine takes minutes and finds the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cpp_tool import Verdict, parse_log
from benchmarks.mutants.build import Built
from benchmarks.mutants.mutant import THREADS, Mutant
from benchmarks.processes import timed

_ENVIRONMENT = {"GGML_NO_BACKTRACE": "1", "OMP_WAIT_POLICY": "passive"}
_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}
_RED = (Verdict.FAIL, Verdict.NONFINITE)


@dataclass(frozen=True, slots=True)
class CppLook:
    """What the C++ tool says of a mutant.

    runs: until one saw it
    failed: cases with a FAIL that had none without the mutant, in the run that saw it
    abort: a message that was not there without the mutant
    compared: how many cases it compares without the mutant; 0: it says nothing of these ops
    """

    runs: int = 0
    failed: tuple[str, ...] = ()
    abort: str = ""
    compared: int = 0
    reached: bool = False
    limited: bool = False
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Whether the mutant was seen."""
        return bool(self.failed or self.abort)


@dataclass(slots=True)
class _Seen:
    """What all runs of one op without a mutant had together."""

    red: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    aborts: set[str] = field(default_factory=set)


class CppTool:
    """Runs the C++ tool; the runs without a mutant are done once for the same ops."""

    def __init__(self, built: Built, scratch: Path, limit_s: float, rounds: int) -> None:
        self._built = built
        self._marker = scratch / "reached-cpp"
        self._limit_s = limit_s
        self._rounds = rounds
        self._baselines: dict[tuple[str, str, bool], _Seen] = {}

    def look(self, mutant: Mutant) -> CppLook:
        """As many runs as it takes to see the mutant, and not more than `rounds`."""
        threads = {} if mutant.kind == THREADS else _ONE_THREAD
        before = {op: self._baseline(op, mutant.params, threads) for op in mutant.ops}
        compared = sum(len(seen.compared) for seen in before.values())
        self._marker.unlink(missing_ok=True)
        names = {"GRADCHECK_MUTANT": mutant.name, "GRADCHECK_MUTANT_REACHED": str(self._marker), **threads}
        seconds, limited = 0.0, False
        for number in range(1, self._rounds + 1):
            for op in mutant.ops:
                after, code, wall = self._run(op, mutant.params, names)
                seconds += wall
                limited = limited or code is None
                failed = tuple(sorted(after.red - before[op].red))
                aborts = after.aborts - before[op].aborts
                if failed or aborts:
                    text = next(iter(aborts), "")
                    return CppLook(number, failed, text, compared, self._marker.exists(), limited, round(seconds, 1))
        return CppLook(self._rounds, (), "", compared, self._marker.exists(), limited, round(seconds, 1))

    def _baseline(self, op: str, params: str, threads: Mapping[str, str]) -> _Seen:
        key = (op, params, bool(threads))
        if key not in self._baselines:
            seen = _Seen()
            for _ in range(self._rounds):
                run, _, _ = self._run(op, params, threads)
                seen.red |= run.red
                seen.compared |= run.compared
                seen.aborts |= run.aborts
            self._baselines[key] = seen
        return self._baselines[key]

    def _run(self, op: str, params: str, env: Mapping[str, str]) -> tuple[_Seen, int | None, float]:
        command = [str(self._built.cpp), "grad", "-b", "CPU", "-o", op, *(("-p", params) if params else ())]
        sample = timed(command, self._limit_s, {**_ENVIRONMENT, **env})
        log = parse_log(sample.stdout, sample.stderr)
        died = sample.code is not None and sample.code not in (0, 1)
        seen = _Seen(
            red={case.case_id for case in log.cases if case.verdict in _RED},
            compared=set(log.compared),
            aborts={log.abort or f"ended with {sample.code}"} if died else set(),
        )
        return seen, sample.code, sample.wall_s
