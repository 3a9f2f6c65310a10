"""Planted faults of eval through ggml's scheduler: wrong results, and nodes that run elsewhere than demanded."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from gradcheck.model.case import Case
from gradcheck.model.job import Settings
from gradcheck.model.result import Placement
from gradcheck.model.status import Status
from gradcheck.modes.bench import Device
from tests.builders import make_case
from tests.faults.conftest import RunMode
from tests.faults.faulty import FaultyDevice, FaultyProgram, scaled

CASE = make_case("out = silu(a)", a=(50, 20, 5, 1))
SCHED = Settings(sched=True)


@dataclass(frozen=True)
class FaultyScheduling(FaultyDevice):
    """A device whose faults show through the scheduler alone; `elsewhere` is where it claims that nodes ran."""

    elsewhere: Placement | None = None

    def open(self, case: Case, *, backward: bool = False) -> Any:
        return self.device.open(case, backward=backward)

    def open_scheduled(self, case: Case, *, backward: bool = False) -> "FaultyScheduled":
        return FaultyScheduled(self.device.open_scheduled(case, backward=backward), self)


class FaultyScheduled(FaultyProgram):
    def __init__(self, program: Any, device: FaultyScheduling) -> None:
        super().__init__(program, device.gradient, device.output)
        self.placement = device.elsewhere or program.placement


def test_without_a_fault_it_passes_and_says_where(cpu: Device, run_mode: RunMode) -> None:
    outcome = run_mode("eval", CASE, FaultyScheduling(cpu), SCHED)
    assert outcome.status is Status.PASS
    assert outcome.placement == Placement((("SILU", "CPU"),), 1, "CPU")
    assert run_mode("eval", CASE, FaultyScheduling(cpu)).placement is None


@pytest.mark.parametrize("factor", [0.0, 1.01, np.nan])
def test_a_wrong_output_is_caught(factor: float, cpu: Device, run_mode: RunMode) -> None:
    faulty = FaultyScheduling(cpu, output=lambda y: y * factor)
    assert run_mode("eval", CASE, faulty).status is Status.PASS
    outcome = run_mode("eval", CASE, faulty, SCHED)
    assert outcome.status is Status.FAIL
    assert outcome.evidence


def test_a_wrong_gradient_is_caught(cpu: Device, run_mode: RunMode) -> None:
    outcome = run_mode("eval", CASE, FaultyScheduling(cpu, gradient=scaled(1.01)), Settings(sched=True, backward=True))
    assert outcome.status is Status.FAIL
    assert "grad(a)" in outcome.reason


@pytest.mark.parametrize(
    ("demanded", "nodes", "reason"),
    [
        ("target", (("ADD", "GPU0"), ("ADD", "GPU0")), "ADD ran on GPU0, the case expects it on the target"),
        ("target", (("SILU", "CPU"), ("ADD", "GPU0")), "ADD ran on GPU0, the case expects it on the target"),
        ("cpu", (("MUL_MAT", "CPU"),), "MUL_MAT ran on CPU, the case expects it on the CPU"),
    ],
)
def test_a_node_elsewhere_is_caught(
    demanded: str, nodes: tuple[tuple[str, str], ...], reason: str, cpu: Device, run_mode: RunMode
) -> None:
    # The third device is called CPU and is not the one that ggml falls back to.
    faulty = FaultyScheduling(cpu, elsewhere=Placement(nodes, 2, "CPU" if demanded == "target" else "CPU1"))
    case = replace(CASE, placement=demanded)
    outcome = run_mode("eval", case, faulty, SCHED)
    assert (outcome.status, outcome.reason) == (Status.FAIL, reason)
    assert run_mode("eval", case, faulty).status is Status.PASS
    assert run_mode("eval", CASE, faulty, SCHED).status is Status.PASS
