"""Planted faults of eval and support: wrong outputs, refusing devices."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradcheck.model.case import Case, Picks
from gradcheck.model.errors import Unsupported
from gradcheck.model.job import Settings
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Device
from tests.builders import make_case
from tests.faults.conftest import RunMode
from tests.faults.faulty import FaultyDevice, FaultyProgram, OutputFault, scaled

CASE = make_case("out = silu(a)", a=(50, 20, 5, 1))
MASKED = make_case("out = diag_mask_inf(a, 0)", a=(6, 6, 2, 1))


def set_at(index: int, value: float) -> OutputFault:
    def fault(y: Array) -> Array:
        y.flat[index] = value
        return y

    return fault


def negate_infinities(y: Array) -> Array:
    return np.where(np.isinf(y), -y, y)


FAULTS: dict[str, tuple[Case, OutputFault]] = {
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
def test_a_wrong_output_is_caught(name: str, cpu: Device, run_mode: RunMode) -> None:
    case, fault = FAULTS[name]
    outcome = run_mode("eval", case, FaultyDevice(cpu, output=fault))
    assert outcome.status is Status.FAIL
    assert outcome.evidence


def test_one_wrong_element_in_a_million_is_caught(cpu: Any, run_mode: RunMode) -> None:
    """Its share in the mean square is below the limit; the bound on each element sees it."""
    case = make_case("out = scale(a, 3)", a=(1000, 1000, 1, 1))
    outcome = run_mode("eval", case, FaultyDevice(cpu, output=lambda y: set_at(777_777, y.flat[777_777] + 0.1)(y)))
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith("element of out")
    assert outcome.evidence[0].index == (777, 777, 0, 0)


SORTED = replace(make_case("out = argsort(a, SORT_ORDER_ASC)", a=(40, 6, 1, 1)), picks=Picks("a"))
CHOSEN = replace(make_case("out = top_k(a, 7)", a=(40, 6, 1, 1)), picks=Picks("a", ordered=False))


def exchange(first: int, second: int) -> OutputFault:
    def fault(y: Array) -> Array:
        y[..., [first, second]] = y[..., [second, first]]
        return y

    return fault


def test_indices_may_come_in_any_order_only_where_the_case_says_so(cpu: Any, run_mode: RunMode) -> None:
    settings = Settings(reference="CPU")
    faulty = FaultyDevice(cpu, output=exchange(2, 3))
    assert run_mode("eval", SORTED, cpu, settings).status is Status.PASS
    assert run_mode("eval", SORTED, faulty, settings).status is Status.FAIL
    assert run_mode("eval", CHOSEN, faulty, settings).status is Status.PASS


@pytest.mark.parametrize("case", [SORTED, CHOSEN], ids=["argsort", "top_k"])
@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (-1.0, "1 indices are no columns"),
        (40.0, "1 indices are no columns"),
        (None, "1 indices stand in their row before"),
    ],
)
def test_wrong_indices_are_caught(case: Case, index: float | None, reason: str, cpu: Any, run_mode: RunMode) -> None:
    def fault(y: Array) -> Array:
        y[0, 0, 3, 5] = y[0, 0, 3, 4] if index is None else index
        return y

    outcome = run_mode("eval", case, FaultyDevice(cpu, output=fault), Settings(reference="CPU"))
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith(reason)
    assert outcome.evidence[0].tensor == "a[out]"


class ForgetfulProgram(FaultyProgram):
    """Gives other bits each time."""

    runs = 0

    def forward(self) -> np.ndarray[Any, Any]:
        self.runs += 1
        y: np.ndarray[Any, Any] = self._program.forward().copy()
        y.flat[3] *= 1 + 1e-7 * self.runs
        return y


class ForgetfulDevice(FaultyDevice):
    def open(self, case: Any, *, backward: bool = False) -> FaultyProgram:
        return ForgetfulProgram(self.device.open(case, backward=backward), None, None)


def test_a_result_that_does_not_repeat_fails(cpu: Any, run_mode: RunMode) -> None:
    assert run_mode("eval", CASE, ForgetfulDevice(cpu)).status is Status.PASS
    outcome = run_mode("eval", CASE, ForgetfulDevice(cpu), Settings(repeat=3))
    assert outcome.status is Status.FAIL
    assert "run 2 differs from run 1 in 1 elements" in outcome.reason
    assert run_mode("eval", CASE, cpu, Settings(repeat=3)).status is Status.PASS


def test_a_wrong_gradient_shows_in_eval_backward(cpu: Any, run_mode: RunMode) -> None:
    settings = Settings(backward=True)
    assert run_mode("eval", CASE, cpu, settings).status is Status.PASS
    outcome = run_mode("eval", CASE, FaultyDevice(cpu, gradient=scaled(1.01)), settings)
    assert outcome.status is Status.FAIL
    assert "grad(a)" in outcome.reason


class ClobberingProgram(FaultyProgram):
    def changed_inputs(self) -> list[str]:
        return ["a"]


class ClobberingDevice(FaultyDevice):
    def open(self, case: Any, *, backward: bool = False) -> FaultyProgram:
        return ClobberingProgram(self.device.open(case, backward=backward), None, None)


@pytest.mark.parametrize("mode", ["grad", "eval"])
def test_a_clobbered_input_fails(mode: str, cpu: Any, run_mode: RunMode) -> None:
    outcome = run_mode(mode, CASE, ClobberingDevice(cpu))
    assert outcome.status is Status.FAIL
    assert "the input a was changed" in outcome.reason


class OverwritingProgram(FaultyProgram):
    def overwrites(self) -> list[str]:
        return ["out"]


class OverwritingDevice(FaultyDevice):
    def open(self, case: Case, *, backward: bool = False) -> FaultyProgram:
        return OverwritingProgram(self.device.open(case, backward=backward), None, None)


@pytest.mark.parametrize("mode", ["grad", "eval"])
def test_a_write_past_the_end_fails(mode: str, cpu: Device, run_mode: RunMode) -> None:
    outcome = run_mode(mode, CASE, OverwritingDevice(cpu))
    assert outcome.status is Status.FAIL
    assert "behind the end of out" in outcome.reason


class RefusingDevice(FaultyDevice):
    """Takes no backward graph at all, or nothing."""

    backward_only = True

    def check(self, case: Case, *, backward: bool = False) -> None:
        if backward or not self.backward_only:
            raise Unsupported("planted: no kernel for this")
        self.device.check(case, backward=backward)


class RefusingAll(RefusingDevice):
    backward_only = False


def test_a_refusing_device_shows_in_support(cpu: Device, run_mode: RunMode) -> None:
    def answer(target: Device | FaultyDevice) -> tuple[Status, dict[str, int]]:
        outcome = run_mode("support", CASE, target)
        return outcome.status, dict(outcome.counts)

    assert answer(cpu) == (Status.PASS, {"forward": 1, "backward": 1})
    assert answer(RefusingDevice(cpu)) == (Status.PASS, {"forward": 1, "backward": 0})
    assert answer(RefusingAll(cpu)) == (Status.UNSUPPORTED, {"forward": 0, "backward": 0})
