"""`gradcheck` as a process: a run with its record, and a server on the loopback."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Self

TOOL = [sys.executable, "-m", "gradcheck"]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}


def run(*arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOOL, *arguments], capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=timeout_s
    )


def record(*arguments: str, timeout_s: float = 120.0) -> dict[str, Any]:
    done = run(*arguments, "--format", "json", timeout_s=timeout_s)
    assert done.stdout, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def endings(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and reason of each op."""
    return {result["op"]: (result["status"], result["outcome"]["reason"]) for result in found["results"]}


@dataclass(frozen=True)
class Serving:
    """A running `gradcheck serve`."""

    process: subprocess.Popen[str]
    greeting: str
    port: int

    @classmethod
    def start(cls, bind: str = "127.0.0.1:0") -> Self:
        process = subprocess.Popen(
            [*TOOL, "serve", "--bind", bind, "-b", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert process.stdout
        greeting = process.stdout.readline()
        found = re.search(r"rpc://CPU@[\d.]+:(\d+)", greeting)
        if found is None:
            _, said = process.communicate(timeout=30)
            raise AssertionError(f"the server did not start: {said}")
        return cls(process, greeting, int(found[1]))

    @property
    def target(self) -> str:
        return f"rpc://127.0.0.1:{self.port}"

    def end(self, sent: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit code and what it said on stderr."""
        self.process.send_signal(sent)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
