"""Planted faults of eval, perf and support: wrong outputs, slow kernels, refusing devices."""

import time
from typing import Any

import numpy as np
import pytest

from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.model.status import Status
from tests.faults.conftest import RunMode, make_case
from tests.faults.faulty import FaultyDevice, FaultyProgram

CASE = make_case("out = silu(a)", a=(50, 20, 5, 1))
MASKED = make_case("out = diag_mask_inf(a, 0)", a=(6, 6, 2, 1))


def set_at(index: int, value: float) -> Any:
    def fault(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        y.flat[index] = value
        return y

    return fault


def negate_infinities(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(np.isinf(y), -y, y)


FAULTS: dict[str, tuple[Case, Any]] = {
    "a factor of 1.01": (CASE, lambda y: 1.01 * y),
    "a NaN": (CASE, set_at(4321, float("nan"))),
    "an infinity": (CASE, set_at(0, float("inf"))),
    "an unwritten tail": (CASE, set_at(-1, float("nan"))),
    "one large element": (CASE, set_at(17, 100.0)),
    "swapped rows": (CASE, lambda y: y[..., ::-1, :]),
    "an infinity of the wrong sign": (MASKED, negate_infinities),
    "zeros": (CASE, np.zeros_like),
}


@pytest.mark.parametrize("case", [CASE, MASKED], ids=["silu", "mask"])
def test_without_a_fault_eval_passes(case: Case, run_mode: RunMode) -> None:
    assert run_mode("eval", case).status is Status.PASS


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_output_is_caught(name: str, cpu: Any, run_mode: RunMode) -> None:
    case, fault = FAULTS[name]
    outcome = run_mode("eval", case, FaultyDevice(cpu, output=fault))
    assert outcome.status is Status.FAIL
    assert outcome.evidence


class OverwritingProgram(FaultyProgram):
    def overwrites(self) -> list[str]:
        return ["out"]


class OverwritingDevice(FaultyDevice):
    def open(self, case: Any, *, backward: bool = False) -> FaultyProgram:
        return OverwritingProgram(self.device.open(case, backward=backward), None, None)


@pytest.mark.parametrize("mode", ["grad", "eval"])
def test_a_write_past_the_end_fails(mode: str, cpu: Any, run_mode: RunMode) -> None:
    outcome = run_mode(mode, CASE, OverwritingDevice(cpu))
    assert outcome.status is Status.FAIL
    assert "behind the end of out" in outcome.reason


class SlowProgram(FaultyProgram):
    def compute(self) -> None:
        time.sleep(2e-3)
        self._program.compute()


class SlowDevice(FaultyDevice):
    def open(self, case: Any, *, backward: bool = False) -> FaultyProgram:
        return SlowProgram(self.device.open(case, backward=backward), None, None)


def test_a_slow_kernel_shows_in_perf(cpu: Any, run_mode: RunMode) -> None:
    def median(target: Any) -> float:
        outcome = run_mode("perf", CASE, target)
        assert outcome.status is Status.PASS
        assert len(outcome.samples) >= 7
        return next(metric.value for metric in outcome.metrics if metric.name == "time")

    # A sleep never returns early; how fast the real kernel is, is no matter for a test.
    assert median(SlowDevice(cpu)) >= 2e-3


class RefusingDevice(FaultyDevice):
    """Takes no backward graph at all, or nothing."""

    backward_only = True

    def check(self, case: Case, *, backward: bool = False) -> None:
        if backward or not self.backward_only:
            raise Unsupported("planted: no kernel for this")
        self.device.check(case, backward=backward)


class RefusingAll(RefusingDevice):
    backward_only = False


def test_a_refusing_device_shows_in_support(cpu: Any, run_mode: RunMode) -> None:
    def answer(target: Any) -> tuple[Status, dict[str, int]]:
        outcome = run_mode("support", CASE, target)
        return outcome.status, dict(outcome.counts)

    assert answer(cpu) == (Status.PASS, {"forward": 1, "backward": 1})
    assert answer(RefusingDevice(cpu)) == (Status.PASS, {"forward": 1, "backward": 0})
    assert answer(RefusingAll(cpu)) == (Status.UNSUPPORTED, {"forward": 0, "backward": 0})
