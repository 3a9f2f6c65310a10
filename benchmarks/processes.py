"""Timing whole processes, with an eye on what else the machine does meanwhile."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal; the ticks of guests are in `user`
QUIET = 0.1
_WINDOW_S = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """One process, from its start to its end. `code` is None where the time limit ended it."""

    wall_s: float
    cpu_s: float
    foreign: float  # share of all processors that others took meanwhile
    code: int | None
    stdout: str
    stderr: str


def timed(command: Sequence[str], limit_s: float, env: Mapping[str, str] | None = None) -> Sample:
    """Run a command in a session of its own and kill all of it at the limit."""
    busy, used = _busy_s(), _children_s()
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**_as_installed(), **(env or {})},
    )
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        code = None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    wall, cpu = time.perf_counter() - began, _children_s() - used
    foreign = max(0.0, _busy_s() - busy - cpu) / (wall * processors())
    return Sample(wall, cpu, min(1.0, foreign), code, stdout, stderr)


def _as_installed() -> dict[str, str]:
    """The environment, in which Python keeps what it has compiled, as it does for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def wait_for_quiet(patience_s: float) -> bool:
    """Wait until others leave the processors alone; False if they did not in that time."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        busy = _busy_s()
        time.sleep(_WINDOW_S)
        if (_busy_s() - busy) / (_WINDOW_S * processors()) < QUIET:
            return True
    return False


def processors() -> int:
    return os.cpu_count() or 1


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _busy_s() -> float:
    if not _STAT.exists():
        return 0.0
    ticks = [int(word) for word in _STAT.read_text().splitlines()[0].split()[1:]]
    return sum(ticks[i] for i in _BUSY) / os.sysconf("SC_CLK_TCK")
