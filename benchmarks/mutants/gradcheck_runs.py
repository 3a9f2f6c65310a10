"""gradcheck on the mutated library: is a case bad that is not bad without the mutant?"""

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.mutants.build import Built
from benchmarks.mutants.mutant import Mutant
from benchmarks.processes import timed

#: What makes gradcheck's exit code 1.
BAD = frozenset({"FAIL", "CRASH", "TIMEOUT", "ERROR", "VACUOUS", "XPASS"})
_FINISHED = (0, 1, 3)
_PASSIVE = {"OMP_WAIT_POLICY": "passive"}  # threads that spin take minutes on a busy machine


@dataclass(frozen=True, slots=True)
class Look:
    """One run of gradcheck with a mutant.

    options: beside the plain ones; empty in the first look
    statuses: how many cases are bad that are not without the mutant, by status
    case, reason: the first of them
    problem: why there is no result, as where gradcheck does not have an option
    """

    options: str
    statuses: dict[str, int] = field(default_factory=dict)
    cases: int = 0
    case: str = ""
    reason: str = ""
    problem: str = ""
    reached: bool = False
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Whether the mutant was seen."""
        return bool(self.statuses)


@dataclass(frozen=True, slots=True)
class _Run:
    statuses: dict[str, tuple[str, str]]  # status and reason by case id
    problem: str
    seconds: float


class Gradcheck:
    """Runs gradcheck; the runs without a mutant are done once for the same ops and options."""

    def __init__(self, built: Built, scratch: Path, limit_s: float, jobs: int) -> None:
        self._built = built
        self._marker = scratch / "reached-gradcheck"
        self._limit_s = limit_s
        self._jobs = jobs
        self._baselines: dict[tuple[str, ...], _Run] = {}

    def looks(self, mutant: Mutant) -> tuple[Look, ...]:
        """The plain run, then those with the options that the mutant needs, until one sees it."""
        done: list[Look] = []
        for options in ("", *mutant.needs):
            done.append(self._look(mutant, options))
            if done[-1].caught:
                break
        return tuple(done)

    def command(self, mutant: Mutant, options: str) -> list[str]:
        """The arguments after `gradcheck`."""
        chosen = [word for word in ("-p", mutant.params) if mutant.params]
        words = ["grad", "-b", "cpu", "-o", ",".join(mutant.ops), *chosen, "--seed", "0", "-j", str(self._jobs)]
        return [*words, "-q", "--format", "json", *shlex.split(options)]

    def _look(self, mutant: Mutant, options: str) -> Look:
        arguments = self.command(mutant, options)
        key = tuple(arguments)
        if key not in self._baselines:
            self._baselines[key] = self._run(arguments, {})
        before = self._baselines[key]
        if before.problem:
            return Look(options, problem=f"without the mutant: {before.problem}")
        self._marker.unlink(missing_ok=True)
        names = {"GRADCHECK_MUTANT": mutant.name, "GRADCHECK_MUTANT_REACHED": str(self._marker)}
        run = self._run(arguments, names)
        new = new_bad(before.statuses, run.statuses)
        first = next(iter(new), "")
        return Look(
            options=options,
            statuses=dict(Counter(new.values())),
            cases=len(run.statuses),
            case=first,
            reason=run.statuses[first][1] if first else "",
            problem=run.problem,
            reached=self._marker.exists(),
            seconds=round(run.seconds, 1),
        )

    def _run(self, arguments: Sequence[str], env: Mapping[str, str]) -> _Run:
        paths = [str(self._built.overlay), *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, "-P", "-m", "gradcheck", *arguments]
        sample = timed(command, self._limit_s, {"PYTHONPATH": os.pathsep.join(paths), **_PASSIVE, **env})
        if sample.code is None:
            return _Run({}, f"more than {self._limit_s:g} s", sample.wall_s)
        if sample.code not in _FINISHED:
            last = (sample.stderr.strip().splitlines() or ["no message"])[-1]
            return _Run({}, f"exit code {sample.code}: {last}", sample.wall_s)
        results = json.loads(sample.stdout)["results"]
        statuses = {r["case_id"]: (r["status"], r["outcome"]["reason"]) for r in results}
        return _Run(statuses, "", sample.wall_s)


def new_bad(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The cases that are bad with the mutant and were not without it, and their statuses; FAIL first."""
    found = {
        case_id: status
        for case_id, (status, _) in after.items()
        if status in BAD and before.get(case_id, ("", ""))[0] not in BAD
    }
    return dict(sorted(found.items(), key=lambda item: item[1] != "FAIL"))
