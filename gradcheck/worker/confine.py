"""What a worker does to itself before it runs anything: limits, signals, its log, its end."""

import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import sys
from pathlib import Path

#: Endless printing must not fill the disk; caches that GPU drivers write stay far below this.
MAX_FILE_BYTES = 2**30

#: How much memory that was given back a worker keeps for its next case, in blocks up to the largest that glibc allows.
KEPT_BYTES = 2**28
_LARGEST_BLOCK = 2**25

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LINE_BUFFERED = 1  # _IOLBF of the C libraries of Linux and macOS


def confine(template: int, log: int, memory_bytes: int) -> None:
    """Make this fresh fork of process `template` a worker: its own session, its limits, and `log` as its output."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with(template)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    faulthandler.enable(file=2)
    keep_memory()
    limit(memory_bytes)


def die_with(parent: int) -> None:
    """On Linux: be killed when the process `parent` ends, however it ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def limit(memory_bytes: int) -> None:
    """Bound memory (0: no bound) and files, write no core; be the first that the system kills for memory."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    if memory_bytes:
        # Not RLIMIT_AS: CUDA reserves address space by the terabyte and uses little of it.
        _lower(resource.RLIMIT_DATA, memory_bytes)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def keep_memory() -> None:
    """Let glibc keep freed memory: getting each page anew from the system takes as long as many a case."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if sys.platform == "linux" and mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)


def line_buffer_c_stdout() -> None:
    """Let what C code prints reach the log line by line: a buffer is lost when the process aborts."""
    symbol = "__stdoutp" if sys.platform == "darwin" else "stdout"
    library = ctypes.CDLL(None)
    with contextlib.suppress(ValueError):
        library.setvbuf(ctypes.c_void_p.in_dll(library, symbol), None, _LINE_BUFFERED, 0)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (bound, bound))
