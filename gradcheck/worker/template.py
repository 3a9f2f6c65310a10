"""The template: imports everything once, opens no device, and forks a worker whenever it is asked.

It reads requests from its control socket: a line with NUMBER and two file descriptors (the worker's channel and its
log) forks a worker, one with -NUMBER kills it. It writes lines of JSON: {"ready"} or {"error"} first, then of
workers {"worker", "pid"} when one has been forked and {"worker", "status"} when one has ended, with its status
as os.waitpid gives it.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gradcheck.model.errors import LibraryError
from gradcheck.worker.confine import confine, line_buffer_c_stdout
from gradcheck.worker.equipment import Equipment, equip
from gradcheck.worker.serve import serve

#: How long the end waits for workers that have been killed but are stuck in a driver.
REAP_S = 1.0


def main(arguments: Sequence[str]) -> int:
    """Run the template until the parent closes the control socket, or is gone."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    config = json.loads(arguments[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line_buffer_c_stdout()
    try:
        equipment = equip(config)
    except LibraryError as error:
        traceback.print_exception(error)
        _tell(control, {"error": str(error)})
        return 1
    gc.collect()
    gc.freeze()  # workers share these pages as long as no collection touches them
    _tell(control, {"ready": True})
    nursery = Nursery(control, equipment, int(config["memory_bytes"]))
    try:
        nursery.tend()
    except OSError:  # the parent is gone in the middle of a report
        pass
    finally:
        nursery.clear()
    return 0


class Nursery:
    """The workers that the template has forked and not yet buried."""

    def __init__(self, control: socket.socket, equipment: Equipment, memory_bytes: int) -> None:
        self._control = control
        self._equipment = equipment
        self._memory_bytes = memory_bytes
        self._workers: dict[int, int] = {}
        self._requests = b""
        self._fds: list[int] = []
        # A death is a byte in this pair, so that one select waits for requests and deaths alike.
        self._alarm, self._alarm_end = socket.socketpair()
        for end in (self._alarm, self._alarm_end):
            end.setblocking(False)

    def tend(self) -> None:
        """Fork and bury until the control socket closes."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._alarm_end.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._alarm, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._alarm in ready:
                    self._alarm.recv(4096)
                    self._bury()
                if self._control in ready and not self._take_requests():
                    return

    def clear(self) -> None:
        """Kill every worker and wait for its end."""
        for number in self._workers.values():
            self._kill(number)
        until = time.monotonic() + REAP_S
        while self._workers and time.monotonic() < until:
            for pid in list(self._workers):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self._workers[pid]
            time.sleep(0.001)

    def _take_requests(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, 4096, 16)
        self._requests += data
        self._fds += fds
        *numbers, self._requests = self._requests.split(b"\n")
        for number in numbers:
            if number.startswith(b"-"):
                self._kill(-int(number))
            else:
                channel, log, *self._fds = self._fds
                self._fork(int(number), channel, log)
        return bool(data)

    def _fork(self, number: int, channel: int, log: int) -> None:
        template = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _tell(self._control, {"worker": number, "error": f"no worker can be forked: {error}"})
        else:
            if pid == 0:
                self._become_worker(template, channel, log)
            self._workers[pid] = number
            _tell(self._control, {"worker": number, "pid": pid})
        finally:
            os.close(channel)
            os.close(log)

    def _become_worker(self, template: int, channel: int, log: int) -> NoReturn:
        code = 1
        try:
            confine(template, log, self._memory_bytes)
            # The parent knows by these ends that the template lives; a worker must not keep them open.
            for end in (self._control, self._alarm, self._alarm_end):
                end.close()
            code = serve(socket.socket(fileno=channel), self._equipment)
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        except Exception as error:  # a fault of the loop itself: say so in the log that goes with the crash
            traceback.print_exception(error)
        finally:
            # Never back into the template's loop, nor through exit handlers of libraries in an unknown state.
            os._exit(code)

    def _kill(self, number: int) -> None:
        for pid in [pid for pid, known in self._workers.items() if known == number]:
            _kill(os.killpg, pid)
            _kill(os.kill, pid)  # right after its fork it has no group of its own yet

    def _bury(self) -> None:
        for pid, number in list(self._workers.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                _kill(os.killpg, pid)  # what it has forked goes with it
                del self._workers[pid]
                _tell(self._control, {"worker": number, "status": status})


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _kill(send: Callable[[int, int], None], pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, signal.SIGKILL)
