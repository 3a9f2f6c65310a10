"""The parent's end of one worker: its channel, its log, its death."""

import contextlib
import fcntl
import json
import math
import os
import signal
import socket
import tempfile
from dataclasses import dataclass
from typing import Any

from gradcheck.model.job import Job
from gradcheck.runner.progress import Progress

#: How much of a log is kept, in bytes from its end.
LOG_TAIL = 8192
#: A longer answer than any mode gives: what sends it is out of order.
MAX_ANSWER = 256 * 2**20
#: A worker that is ready takes a request at once; one that does not for so long never will.
SEND_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Task:
    """A job on its way; `crash` is the reason of a first try that died, in a worker that had run `served` others."""

    job: Job
    crash: str = ""
    served: int = 0


class Child:
    """One worker as the parent sees it.

    slot: its place among the workers that run side by side, from 0
    progress: what it has told of the task in hand
    pid: None until the template has reported the fork
    deadline: when the answer to the request in hand must be there, by time.monotonic(); inf without one
    served: how many jobs it has answered
    hung_up: its end of the channel is closed, and so it is dead or will never answer
    """

    def __init__(self, number: int, slot: int) -> None:
        self.number = number
        self.slot = slot
        self.pid: int | None = None
        self.task: Task | None = None
        self.progress = Progress()
        self.started = 0.0
        self.deadline = math.inf
        self.served = 0
        self.hung_up = False
        self.channel, self._far_end = socket.socketpair()
        self.channel.setblocking(False)
        # Unlinked from the start: nothing to clean up, whoever is killed.
        self._log = tempfile.TemporaryFile(prefix="gradcheck-")  # noqa: SIM115 - lives as long as the worker
        # Everything that the worker forks appends too, and its truncation leaves no hole.
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
        self._received = bytearray()

    def fds(self) -> tuple[int, int]:
        """The worker's end of the channel and its log."""
        return self._far_end.fileno(), self._log.fileno()

    def handed_over(self) -> None:
        """Close the worker's end here, so that its death closes the channel."""
        self._far_end.close()

    def send(self, message: dict[str, Any]) -> None:
        """Send a request. A worker that cannot take it is dead, which its exit tells."""
        self.channel.settimeout(SEND_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self.channel.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.channel.setblocking(False)

    def receive(self) -> list[bytes]:
        """The answers that are complete by now, without waiting."""
        try:
            while chunk := self.channel.recv(1 << 16):
                self._received += chunk
                if len(self._received) > MAX_ANSWER:
                    self._received[:] = b"(endless)\n"
                    break
            else:
                self.hung_up = True
        except BlockingIOError:
            pass
        except OSError:
            self.hung_up = True
        *lines, rest = self._received.split(b"\n")
        self._received = rest
        return [bytes(line) for line in lines]

    def log_tail(self) -> str:
        """The end of what was printed since the worker took its job."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), LOG_TAIL, max(size - LOG_TAIL, 0))
        return tail.decode(errors="replace")

    def close(self) -> None:
        """Let go of the channel and the log; an idle worker ends by itself then."""
        self._far_end.close()
        self.channel.close()
        self._log.close()


def kill_group(pid: int) -> None:
    """SIGKILL to a process and to the group that it leads; nothing where they have ended already."""
    for send in (os.killpg, os.kill):  # the group may not exist yet, right after the fork
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, signal.SIGKILL)
