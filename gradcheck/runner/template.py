"""The parent's end of the template: the process that has imported everything and forks the workers."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

from gradcheck.model.errors import LibraryError
from gradcheck.runner.child import LOG_TAIL, Child
from gradcheck.runner.options import PoolOptions, worker_environment
from gradcheck.runner.reason import abort_sentence

#: Libraries with large GPU code can take a minute to come from a cold disk.
START_TIMEOUT_S = 300.0
#: After its control socket is closed the template only kills its workers.
STOP_TIMEOUT_S = 3.0


class Template:
    """A template process, which imports everything while its maker does other things. Raises OSError."""

    def __init__(self, options: PoolOptions) -> None:
        self._log = tempfile.TemporaryFile(prefix="gradcheck-")  # noqa: SIM115 - lives as long as the process
        self.control, far_end = socket.socketpair()
        self._received = b""
        # -P: the working directory is no place to import from; PYTHONPATH has what this process has.
        command = [sys.executable, "-P", "-u", "-m", "gradcheck.worker"]
        try:
            with far_end:
                self._process = subprocess.Popen(
                    [*command, str(far_end.fileno()), json.dumps(options.config())],
                    pass_fds=(far_end.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    env=worker_environment(),
                    start_new_session=True,  # Ctrl-C reaches the parent alone
                )
        except OSError:
            self.control.close()
            self._log.close()
            raise
        self._ready = False

    def fork(self, child: Child) -> None:
        """Ask for a worker at the far end of `child`; the first time, wait until everything is imported.

        A template that is dead is noticed by `reports`. Raises LibraryError where ggml cannot be loaded.
        """
        if not self._ready:
            try:
                self._await_ready()
            except BaseException:
                self._process.kill()
                self.stop()
                raise
            self._ready = True
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [f"{child.number}\n".encode()], child.fds())
        child.handed_over()

    def kill_worker(self, child: Child) -> None:
        """Have a worker killed whose pid has not been reported yet."""
        with contextlib.suppress(OSError):
            self.control.sendall(f"-{child.number}\n".encode())

    def reports(self) -> list[dict[str, Any]] | None:
        """What has happened to workers: {"worker", and "pid", "status" or "error"}. None: the template is dead."""
        try:
            while chunk := self.control.recv(1 << 16):
                self._received += chunk
        except BlockingIOError:
            pass
        except OSError:
            return None
        else:
            return None
        *lines, self._received = self._received.split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """SIGKILL to the template; on Linux its workers die with it."""
        self._process.kill()

    def stop(self) -> int:
        """End the template, and with it every worker that is left; returns its exit code as Popen does."""
        self.control.close()
        code = self._wait()
        self._log.close()
        return code

    def _await_ready(self) -> None:
        self.control.settimeout(START_TIMEOUT_S)
        line = b""
        try:
            while not line.endswith(b"\n") and (chunk := self.control.recv(1 << 16)):
                line += chunk
        except TimeoutError as error:
            raise LibraryError(f"ggml was not loaded within {START_TIMEOUT_S:.0f} s") from error
        if not line.endswith(b"\n"):
            raise LibraryError(self._death_sentence())
        message = json.loads(line)
        if "error" in message:
            raise LibraryError(message["error"])
        self.control.setblocking(False)

    def _wait(self) -> int:
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _death_sentence(self) -> str:
        code = self._wait()
        size = os.fstat(self._log.fileno()).st_size
        log = os.pread(self._log.fileno(), LOG_TAIL, max(size - LOG_TAIL, 0)).decode(errors="replace")
        ending = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        said = abort_sentence(log)
        return (
            f"the process that loads ggml {ending}{f' ({said})' if said else ''}; "
            "is ggml built for this machine? Try `python -c 'import ggml'`"
        )
