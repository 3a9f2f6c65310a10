"""What came of each mutant with both tools, and what follows from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.mutants.cpp_runs import CppLook
from benchmarks.mutants.gradcheck_runs import Look
from benchmarks.mutants.mutant import Mutant


class Fate(StrEnum):
    """What a tool did with a mutant."""

    CAUGHT = "caught"
    MISSED = "missed"
    NOT_REACHED = "not reached"  # none of its cases runs the mutated code: nothing is proved
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Result:
    """A mutant, and the runs of each tool; None where a tool was not asked."""

    mutant: Mutant
    looks: tuple[Look, ...] | None
    cpp: CppLook | None

    @property
    def ours(self) -> Fate:
        """What gradcheck did with it."""
        if self.looks is None or all(look.problem for look in self.looks):
            return Fate.NOT_RUN
        return _fate(any(look.caught for look in self.looks), any(look.reached for look in self.looks))

    @property
    def theirs(self) -> Fate:
        """What the C++ tool did with it."""
        return Fate.NOT_RUN if self.cpp is None else _fate(self.cpp.caught, self.cpp.reached)

    @property
    def catching(self) -> Look | None:
        """The run of gradcheck that saw it."""
        return next((look for look in self.looks or () if look.caught), None)

    @property
    def wrong(self) -> str:
        """Why the bench fails: gradcheck missed it, or it is not what the list says."""
        if self.looks is None:
            return ""
        if self.mutant.equivalent:
            return "the list calls it equivalent, and gradcheck sees it" if self.ours is Fate.CAUGHT else ""
        if self.ours is Fate.CAUGHT:
            return ""
        problems = "; ".join(f"{look.options or 'plain'}: {look.problem}" for look in self.looks if look.problem)
        return f"gradcheck: {self.ours}" + (f" ({problems})" if problems else "")


def _fate(caught: bool, reached: bool) -> Fate:
    if caught:
        return Fate.CAUGHT
    return Fate.MISSED if reached else Fate.NOT_REACHED


def write(path: Path, results: Sequence[Result]) -> None:
    """Every run as JSON; `read` takes it."""
    records = [
        {
            **asdict(result),
            "gradcheck": result.ours,
            "cpp_tool": result.theirs,
            "wrong": result.wrong,
        }
        for result in results
    ]
    path.write_text(json.dumps(records, indent=1) + "\n")


def read(path: Path) -> dict[str, tuple[tuple[Look, ...] | None, CppLook | None]]:
    """The runs of an earlier bench, by the mutant's name."""
    return {record["mutant"]["name"]: _runs(record) for record in json.loads(path.read_text())}


def _runs(record: Mapping[str, Any]) -> tuple[tuple[Look, ...] | None, CppLook | None]:
    looks, cpp = record["looks"], record["cpp"]
    return (
        None if looks is None else tuple(Look(**look) for look in looks),
        None if cpp is None else CppLook(**{**cpp, "failed": tuple(cpp["failed"])}),
    )
