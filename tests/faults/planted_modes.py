"""Modes that end in every way in which a worker can end, and devices that are none. Run by tests of the pool."""

# ruff: noqa: ARG001 - every mode has the arguments of a mode

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Case
from gradcheck.model.errors import InvalidCase, LibraryError, OutOfMemory, Unsupported, UsageError
from gradcheck.model.result import Metric, Outcome
from gradcheck.model.run import DeviceInfo, LibraryInfo
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench

PASSED = Outcome(Status.PASS)


class FakeDevice:
    def __init__(self, name: str) -> None:
        self.name = name


def open_device(name: str, threads: int) -> FakeDevice:
    if name == "ABORTS":
        os.write(2, b"ggml-abort: /src/ggml-cuda.cu:1: no such device\n")
        os.abort()
    if name == "NONE":
        raise UsageError("no device NONE; there is CPU")
    return FakeDevice(f"{name}/{threads}/{time.perf_counter_ns()}")


def library_info() -> LibraryInfo:
    device = DeviceInfo("CPU", "a fake", "CPU", "CPU", 0, 0)
    return LibraryInfo("0.0.0", "abcdef", "0.0.45", f"pid {os.getpid()}", (device,))


def preload_fails() -> NoReturn:
    raise LibraryError("libggml.so is not there; build it")


def preload_aborts() -> NoReturn:
    os.write(2, b"illegal build\n")
    os.abort()


def _path(case: Case) -> Path:
    """The file that a mode leaves its marks in."""
    return Path(str(dict(case.vars)["path"]))


def ok(case: Case, bench: Bench) -> Outcome:
    return Outcome(Status.PASS, metrics=(Metric("length", float(len(case.name))),), notes=(bench.target.name,))


def devices(case: Case, bench: Bench) -> Outcome:
    again = bench.reference() is bench.reference()
    return Outcome(Status.PASS, notes=(bench.target.name, bench.reference().name, str(again)))


def pid(case: Case, bench: Bench) -> Outcome:
    return Outcome(Status.PASS, reason=str(os.getpid()))


def prints(case: Case, bench: Bench) -> Outcome:
    print("from Python", case.name)
    library = ctypes.CDLL(None)
    library.puts(b"from C \xff")
    os.write(2, b"on stderr\n")
    return PASSED


def chatters(case: Case, bench: Bench) -> Outcome:
    os.write(1, b"x" * 100_000 + b"the end\n")
    return PASSED


def abort(case: Case, bench: Bench) -> None:
    os.write(2, b"ggml-abort: /a/ggml.c:12: GGML_ASSERT(a->ne[0] == 3) failed\n")
    ctypes.CDLL(None).abort()


def abort_with_sentence(case: Case, bench: Bench) -> NoReturn:
    ctypes.CDLL(None).printf(b"unsupported unary op for backward pass: GELU\n")
    os.write(2, b"ggml-abort: /a/ggml.c:6801: fatal error\n")
    os.abort()


def segfault(case: Case, bench: Bench) -> None:
    ctypes.string_at(0)


def loop(case: Case, bench: Bench) -> NoReturn:
    while True:
        pass


def loop_with_child(case: Case, bench: Bench) -> None:
    child = subprocess.Popen(["sleep", "60"])
    _path(case).write_text(str(child.pid))
    child.wait()


def exit_zero(case: Case, bench: Bench) -> NoReturn:
    os._exit(0)


def sys_exit(case: Case, bench: Bench) -> NoReturn:
    sys.exit(3)


def kill_self(case: Case, bench: Bench) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_template(case: Case, bench: Bench) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)


def huge(case: Case, bench: Bench) -> Outcome:
    np.ones(2**36, dtype=np.uint8)
    return PASSED


def huge_in_c(case: Case, bench: Bench) -> Outcome:
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    if not library.malloc(ctypes.c_size_t(2**36)):
        os.write(2, b"ggml-abort: /a/ggml.c:300: insufficient memory (attempted to allocate 65536 MB)\n")
        os.abort()
    return PASSED


def raises(case: Case, bench: Bench) -> float:
    return 1 / 0


def unsupported(case: Case, bench: Bench) -> NoReturn:
    raise Unsupported("no kernel for SIN")


def invalid(case: Case, bench: Bench) -> NoReturn:
    raise InvalidCase("a and b do not fit")


def bad_language(case: Case, bench: Bench) -> NoReturn:
    raise LanguageError("no function foo")


def out_of_memory(case: Case, bench: Bench) -> NoReturn:
    raise OutOfMemory("8 GB on CUDA0")


def wrong_type(case: Case, bench: Bench) -> str:
    return "PASS"


def numpy_metric(case: Case, bench: Bench) -> Outcome:
    wrong: Any = np.float32(1)
    return Outcome(Status.PASS, metrics=(Metric("maa", wrong),))


def fails(case: Case, bench: Bench) -> Outcome:
    return Outcome(Status.FAIL, "off by 2")


def sleeps(case: Case, bench: Bench) -> None:
    if case.vars:
        with _path(case).open("a") as file:
            file.write(f"{os.getpid()}\n")
    time.sleep(60)


def naps(case: Case, bench: Bench) -> Outcome:
    time.sleep(0.05)
    return PASSED


def flaky(case: Case, bench: Bench) -> Outcome:
    path = _path(case)
    if not path.exists():
        path.touch()
        os.abort()
    return PASSED


def sleeps_once(case: Case, bench: Bench) -> Outcome:
    path = _path(case)
    if not path.exists():
        path.write_text(str(os.getpid()))
        time.sleep(60)
    return PASSED


def _channels() -> Iterator[tuple[int, socket.socket]]:
    """The sockets of this process: a worker has its channel only."""
    for fd in range(3, 30):
        with contextlib.suppress(OSError):
            channel = socket.socket(fileno=os.dup(fd))
            channel.getpeername()
            yield fd, channel


def garbles(case: Case, bench: Bench) -> Outcome:
    for _, channel in _channels():
        with contextlib.suppress(OSError):
            channel.send(b"rubbish\n")
    return PASSED


def hangs_up(case: Case, bench: Bench) -> None:
    for _, channel in _channels():
        channel.shutdown(socket.SHUT_RDWR)
    time.sleep(60)


def forks(case: Case, bench: Bench) -> Outcome:
    if os.fork() == 0:
        return PASSED  # a child that has lost its way must not answer
    os.wait()
    return Outcome(Status.PASS, "the parent")


def at_seed(case: Case, bench: Bench) -> object:
    """Passes after a nap, but with one seed, the variable `at`: there it is the mode that `then` names."""
    variables = dict(case.vars)
    if bench.settings.seed == variables["at"]:
        return MODES[str(variables["then"])](case, bench)
    time.sleep(0.02)
    return Outcome(Status.PASS, metrics=(Metric("maa", 1e-6 * bench.settings.seed, 1e-3),))


MODES: dict[str, Callable[[Case, Bench], object]] = {
    name: value for name, value in globals().items() if callable(value) and name.islower()
}
