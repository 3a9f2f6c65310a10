"""Modes by name, on the real CPU or on a device that only seems to be one."""

import time
from typing import Protocol, cast

import pytest

from gradcheck.model.case import Case
from gradcheck.model.job import Settings
from gradcheck.model.result import Outcome
from gradcheck.modes import MODES
from gradcheck.modes.bench import Bench, Device
from tests.faults.faulty import FaultyDevice


class RunMode(Protocol):
    """Runs a case in a mode, on the CPU where no target is given."""

    def __call__(
        self, mode: str, case: Case, target: Device | FaultyDevice | None = None, settings: Settings | None = None
    ) -> Outcome: ...


@pytest.fixture
def run_mode(cpu: Device) -> RunMode:
    def run(
        mode: str, case: Case, target: Device | FaultyDevice | None = None, settings: Settings | None = None
    ) -> Outcome:
        bench = Bench(cast(Device, target or cpu), lambda: cpu, settings or Settings(), time.perf_counter)
        return MODES[mode](case, bench)

    return run
