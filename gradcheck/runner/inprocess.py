"""The in-process twin of the pool, for a debugger: the same contract, without the protection."""

import importlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from gradcheck.model.event import Event, Finished, Started
from gradcheck.model.job import Job
from gradcheck.model.result import Outcome
from gradcheck.model.run import LibraryInfo
from gradcheck.model.server import Server
from gradcheck.model.status import Status
from gradcheck.runner.options import PoolOptions
from gradcheck.runner.verdict import judge


class InProcess:
    """Runs jobs in this process, one after the other; what C code prints goes where it goes."""

    def __init__(self, options: PoolOptions) -> None:
        self._options = options
        self._equipment: Any = None

    def inspect(self, servers: Sequence[Server] = ()) -> LibraryInfo:
        """The loaded ggml, its devices and those of RPC servers. Raises LibraryError."""
        info: LibraryInfo = self._equipped().inspect(servers)
        return info

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Run the jobs in order. A crash of C code is a crash of this process."""
        equipment = self._equipped()
        # Late and by name: with workers, the parent never imports what they import.
        perform = importlib.import_module("gradcheck.worker.perform").perform
        for job in jobs:
            yield Started(job, 0)
            started = time.perf_counter()
            try:
                outcome: Outcome = perform(job, equipment)
            except SystemExit as ending:
                outcome = Outcome(Status.CRASH, f"exited with code {ending.code} without an answer")
            yield Finished(judge(job, outcome, time.perf_counter() - started))

    def _equipped(self) -> Any:
        if self._equipment is None:
            equip = importlib.import_module("gradcheck.worker.equipment").equip
            self._equipment = equip(self._options.config())
        return self._equipment
