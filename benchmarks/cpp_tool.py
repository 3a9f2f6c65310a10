"""ggml's C++ tool test-backend-ops: building it from the ggml-python sdist, and reading the logs of grad and perf.

The log of grad names a case up to three times, and its words need care (ggml 0.15.3):

- `  OP(vars): OK` is an announcement, printed before anything was computed.
- The verdict comes after it, under the name of the loss: `  SUM(vars): OK`, or `...: compare failed FAIL`.
- A case that is announced and has no verdict is where the process stopped: an abort, a time limit.
- A comparison whose metric is NaN is an OK like any other; the log has no trace of it.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"^  (?P<op>[A-Z0-9_]+)\((?P<vars>.*?)\):(?P<rest>.*)$")
_RUNS = re.compile(r"^\s*(?P<runs>\d+) runs -\s*(?P<us>[\d.]+) us/run\b")
_ABORT = re.compile(r"^(?P<file>\S+\.(?:c|cpp|h)):(?P<line>\d+): (?P<text>.+)$", re.MULTILINE)


class BuildFailed(Exception):
    """The C++ tool could not be built; the text says what is missing."""


class Verdict(StrEnum):
    """What the C++ tool did with a case."""

    OK = "OK"
    FAIL = "FAIL"
    NONFINITE = "nonfinite"
    UNSUPPORTED = "not supported"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"


COMPARED = (Verdict.OK, Verdict.FAIL)
TOOL = "test-backend-ops"


@dataclass(frozen=True, slots=True)
class CppCase:
    """A case of the log: its id, `OP(vars)`, and what became of it."""

    case_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CppLog:
    """The cases of one run, in their order, and the message of an abort if there was one."""

    cases: tuple[CppCase, ...]
    abort: str

    @property
    def compared(self) -> dict[str, Verdict]:
        """The ids that a numeric comparison decided, each once; a FAIL outweighs an OK."""
        found: dict[str, Verdict] = {}
        for case in self.cases:
            if case.verdict in COMPARED and found.get(case.case_id) is not Verdict.FAIL:
                found[case.case_id] = case.verdict
        return found

    def count(self) -> Counter[Verdict]:
        return Counter(case.verdict for case in self.cases)


def parse_log(stdout: str, stderr: str = "") -> CppLog:
    """The cases in the console output of `test-backend-ops grad`."""
    cases: list[CppCase] = []
    pending = pending_vars = ""
    nonfinite = False
    for text in _ANSI.sub("", stdout).splitlines():
        line = _LINE.match(text)
        if line is None:
            continue
        rest = line["rest"].strip()
        if pending and line["vars"] == pending_vars:
            verdict = _verdict(rest)
            if verdict is None:  # a detail, the verdict follows
                nonfinite = rest.find("nonfinite gradient") >= 0
                continue
            if verdict is Verdict.FAIL and nonfinite:
                verdict = Verdict.NONFINITE
            cases.append(CppCase(pending, verdict))
            pending = ""
            continue
        if pending:
            cases.append(CppCase(pending, Verdict.UNFINISHED))
            pending = ""
        case_id = f"{line['op']}({line['vars']})"
        if rest.startswith("not supported"):
            cases.append(CppCase(case_id, Verdict.UNSUPPORTED))
        else:
            pending, pending_vars, nonfinite = case_id, line["vars"], False
    if pending:
        cases.append(CppCase(pending, Verdict.UNFINISHED))
    return CppLog(tuple(cases), _abort_reason(stderr))


def parse_names(stdout: str, op: str) -> list[str]:
    """The ids of an op's cases in the console output of `test-backend-ops test`, in their order."""
    lines = (_LINE.match(text) for text in _ANSI.sub("", stdout).splitlines())
    return [f"{op}({line['vars']})" for line in lines if line is not None and line["op"] == op]


@dataclass(frozen=True, slots=True)
class CppTime:
    """What its perf mode says of a case: how often the op was computed, and the mean time of it."""

    runs: int
    mean_s: float


def parse_perf_log(stdout: str) -> dict[str, CppTime]:
    """The times in the console output of `test-backend-ops perf`, by `OP(vars)`; of equal ids the last one's."""
    found: dict[str, CppTime] = {}
    for text in _ANSI.sub("", stdout).splitlines():
        line = _LINE.match(text)
        time = _RUNS.match(line["rest"]) if line else None
        if line and time:
            found[f"{line['op']}({line['vars']})"] = CppTime(int(time["runs"]), float(time["us"]) * 1e-6)
    return found


def _verdict(rest: str) -> Verdict | None:
    if rest.startswith("not supported"):
        return Verdict.UNSUPPORTED
    if rest.startswith("skipping"):
        return Verdict.SKIPPED
    if rest == "OK":
        return Verdict.OK
    if rest.startswith("compare failed"):
        return Verdict.FAIL
    return Verdict.UNFINISHED if not rest else None  # an abort takes the buffered word with it


def _abort_reason(stderr: str) -> str:
    found = _ABORT.search(stderr)
    return f"{Path(found['file']).name}:{found['line']}: {found['text'].strip()}" if found else ""


def build(cache: Path) -> Path:
    """The tool built from the sdist of the installed ggml-python, in the cache. Raises BuildFailed."""
    made = _home(cache) / "build"
    tool = made / "bin" / TOOL
    return tool if tool.exists() else compile_tool(download(cache), made)


def download(cache: Path) -> Path:
    """The folder of ggml in the sdist of the installed ggml-python, in the cache. Raises BuildFailed."""
    home = _home(cache)
    source = next(home.glob("*/vendor/ggml"), None)
    if source is not None:
        return source
    home.mkdir(parents=True, exist_ok=True)
    wanted = f"ggml-python=={importlib.metadata.version('ggml-python')}"
    _step(sys.executable, "-m", "pip", "download", "--no-binary", ":all:", "--no-deps", "-d", str(home), wanted)
    sdist = next(home.glob("*.tar.gz"), None)
    if sdist is None:
        raise BuildFailed(f"pip left no sdist of {wanted} in {home}")
    with tarfile.open(sdist) as archive:
        archive.extractall(home, filter="data")
    source = next(home.glob("*/vendor/ggml"), None)
    if source is None:
        raise BuildFailed(f"{sdist.name} holds no vendor/ggml")
    return source


def compile_tool(source: Path, made: Path, jobs: int | None = None) -> Path:
    """The tool from this source of ggml; what is up to date in `made` is not compiled again. Raises BuildFailed."""
    beside = Path(sys.executable).parent / "cmake"
    cmake = str(beside) if beside.exists() else shutil.which("cmake")
    if cmake is None:
        raise BuildFailed("cmake was not found: `pip install cmake`, or give a built tool with --cpp")
    tool = made / "bin" / TOOL
    # Without the last two, git's commit, which is ours here, is in ggml's flags: each commit would compile it again.
    kind = ("-DGGML_BUILD_TESTS=ON", "-DGGML_BUILD_EXAMPLES=OFF", "-DCMAKE_BUILD_TYPE=Release")
    flags = (*kind, "-DGIT_EXE=", "-DGGML_BUILD_COMMIT=sdist")
    _step(cmake, "-S", str(source), "-B", str(made), *flags)
    _step(cmake, "--build", str(made), "--target", TOOL, "-j", str(jobs or os.cpu_count() or 1))
    if not tool.exists():
        raise BuildFailed(f"the build left no {tool}")
    return tool


def _home(cache: Path) -> Path:
    return cache / f"ggml-python-{importlib.metadata.version('ggml-python')}"


def _step(*command: str) -> None:
    print("+", " ".join(command), file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise BuildFailed(f"`{' '.join(command[:4])} ...` ended with {done.returncode}:\n{tail}")
