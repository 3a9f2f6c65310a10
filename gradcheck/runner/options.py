"""What a pool is told: how many workers, how much memory, and what they run."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

#: The share of the free memory that all workers together may take.
MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How a pool runs its jobs.

    workers: how many processes, each with one job in hand
    memory_bytes: what a worker may allocate; None: its share of what is free now (`default_memory`); 0: no limit
    isolate: False runs everything in this process, for a debugger
    modes: "module:ATTR", the mapping from a mode's name to its function (Case, Bench) -> Outcome
    devices: "module" with open_device(name, threads) -> Device and library_info() -> LibraryInfo;
        where RPC servers are to be listed, library_info(servers)
    preload: "module:FUNCTION", called once before workers are forked; must not start threads or open devices
    """

    workers: int = 1
    memory_bytes: int | None = None
    isolate: bool = True
    modes: str = "gradcheck.modes:MODES"
    devices: str = "gradcheck.bindings.devices"
    preload: str = "gradcheck.bindings.library:load"

    def config(self) -> dict[str, object]:
        """What the workers are told, ready for JSON."""
        memory = default_memory(self.workers) if self.memory_bytes is None else self.memory_bytes
        return {
            "modes": self.modes,
            "devices": self.devices,
            "preload": self.preload,
            "memory_bytes": memory,
        }


def default_memory(workers: int) -> int:
    """The bytes that each of `workers` may allocate: equal shares of most of what is available now."""
    return int(_available_bytes() * MEMORY_SHARE) // max(workers, 1)


def worker_environment() -> dict[str, str]:
    """The environment of the template and so of every worker."""
    return os.environ | {
        # Modules come from where this process has them from, whatever put them on its path.
        "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path),
        # An abort must not attach gdb to itself: that takes seconds and prints pages.
        "GGML_NO_BACKTRACE": "1",
        # Threads of a BLAS do not survive a fork, and they would disturb what perf measures.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "VECLIB_MAXIMUM_THREADS": "1",
    }


def _available_bytes() -> int:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([pages, *_meminfo_bytes(), *_cgroup_bytes()])


def _meminfo_bytes() -> list[int]:
    for line in _read_lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return [int(line.split()[1]) * 1024]
    return []


def _cgroup_bytes() -> list[int]:
    """What a container's own limit leaves: its /proc/meminfo shows the host's memory."""
    limit = _read_lines("/sys/fs/cgroup/memory.max")
    current = _read_lines("/sys/fs/cgroup/memory.current")
    if not limit or not current or not limit[0].isdigit():
        return []
    return [max(int(limit[0]) - int(current[0]), 0)]


def _read_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
