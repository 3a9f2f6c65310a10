"""Survive `ggml_abort`: a graph is built on a thread of its own, which an abort parks for ever."""

import os
import queue
import re
import stat
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: Every parked thread keeps its stack. Visiting a graph takes about 150 bytes a node in a row.
STACK_BYTES = 1 << 19

_FILE_AND_LINE = re.compile(r"^.*?\.\w+:\d+: ")
_here = threading.local()


class Abort(Exception):
    """ggml aborted while it built a graph.

    message: what ggml_abort said, without file and line
    printed: what ggml printed on stderr right before, where stderr is a file ("" otherwise)
    """

    def __init__(self, message: str, printed: str) -> None:
        super().__init__(message)
        self.message = _FILE_AND_LINE.sub("", message).strip()
        self.printed = printed.strip()


class _Thread:
    """One thread that runs tasks in turn until it is parked."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.tasks: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self.endings: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        size = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=self._loop, name="ggml-builder", daemon=True).start()
        finally:
            threading.stack_size(size)

    def _loop(self) -> None:
        _here.thread = self
        while True:
            task = self.tasks.get()
            if task is None:
                return
            try:
                ending = ("value", task())
            except BaseException as error:
                ending = ("error", error)
            self.endings.put(ending)
            del task, ending  # an idle thread must keep nothing alive

    def park(self, message: str) -> None:
        """Report an abort and never come back: returning would let ggml end the process."""
        self.endings.put(("abort", message))
        threading.Event().wait()


class Builder:
    """Runs tasks that may abort. A thread is made when there is none, so after a fork too."""

    def __init__(self) -> None:
        self._thread: _Thread | None = None

    def run(self, task: Callable[[], T], patience_s: float | None = None) -> T:
        """The value of `task()`, which runs on the builder thread; its exceptions come through.

        Raises Abort where ggml aborted, and TimeoutError where the task takes longer than `patience_s`. The thread
        and what it held are then given up.
        """
        thread = self._thread
        if thread is None or thread.pid != os.getpid():
            thread = self._thread = _Thread()
        mark = _stderr_size()
        thread.tasks.put(task)
        try:
            kind, value = thread.endings.get(timeout=patience_s)
        except queue.Empty:
            thread.tasks.put(None)
            self._thread = None
            raise TimeoutError(f"no end within {patience_s} s") from None
        except BaseException:  # Ctrl-C: its late answer must not be taken for the next one's
            thread.tasks.put(None)
            self._thread = None
            raise
        if kind == "value":
            result: T = value
            return result
        if kind == "error":
            raise value
        self._thread = None
        raise Abort(value, _stderr_since(mark))


def park_builder(message: str) -> None:
    """Park the calling thread if it is a builder; return at once if it is any other."""
    thread: _Thread | None = getattr(_here, "thread", None)
    if thread is not None:
        thread.park(message)


def _stderr_size() -> int | None:
    """The size of the file behind fd 2; None where it is not a file."""
    try:
        state = os.fstat(2)
    except OSError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def _stderr_since(mark: int | None) -> str:
    if mark is None:
        return ""
    try:
        size = os.fstat(2).st_size - mark
        return _pread(2, size, mark).decode(errors="replace")
    except OSError:
        return ""


def _pread(descriptor: int, size: int, offset: int) -> bytes:
    try:
        return os.pread(descriptor, size, offset)
    except OSError:  # open for writing only: look at the same file through a new descriptor
        again = os.open(f"/dev/fd/{descriptor}", os.O_RDONLY)
        try:
            return os.pread(again, size, offset)
        finally:
            os.close(again)
