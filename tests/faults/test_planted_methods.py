"""Every method of differencing catches wrong gradients, and none is excused by a kink or by its cotangent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradcheck.model.case import Case, Init
from gradcheck.model.job import METHODS, Settings
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Device
from tests.builders import make_case
from tests.faults.conftest import RunMode
from tests.faults.faulty import FaultyDevice, GradientFault, Gradients, changed, one_element, scaled, without_last_row

CASES: dict[str, Case] = {
    "silu": make_case("out = silu(a)", a=(50, 20, 5, 1)),
    "soft_max": make_case("out = soft_max(a)", a=(33, 7, 2, 1)),
    "mul_mat": make_case("out = mul_mat(a, b)", a=(24, 16, 1, 1), b=(24, 9, 1, 1)),
    "sum": make_case("out = sum(mul(a, a))", a=(17, 5, 1, 1)),
}

FAULTS: dict[str, GradientFault] = {
    "a factor of 1.1": scaled(1.1),
    "the sign": scaled(-1),
    "a shift by one": changed("a", lambda g: np.roll(g, 1)),
    "the last row zero": changed("a", without_last_row),
    "one NaN": one_element(5, lambda _: float("nan")),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_a_right_gradient_passes(name: str, method: str, run_mode: RunMode) -> None:
    outcome = run_mode("grad", CASES[name], settings=Settings(method=method, cotangents=3))
    assert outcome.status is Status.PASS, outcome.reason
    assert dict(outcome.counts)["cotangents"] == 3
    used = {used for _, used in outcome.methods}
    assert used == ({method} if method not in ("auto", "sampled", "structured") else used)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_one_fails(name: str, method: str, fault: str, cpu: Device, run_mode: RunMode) -> None:
    settings = Settings(method=method, max_elements=60)
    outcome = run_mode("grad", CASES[name], FaultyDevice(cpu, gradient=FAULTS[fault]), settings=settings)
    assert outcome.status is Status.FAIL


def test_sampled_says_how_many_it_judged(run_mode: RunMode) -> None:
    outcome = run_mode("grad", CASES["sum"], settings=Settings(method="sampled", max_elements=20))
    counts = dict(outcome.counts)
    assert (counts["elements"], counts["judged"]) == (85, 20)
    assert outcome.methods == (("a", "sampled"),)


class Alternating:
    """A fault that shows in some backward passes alone: the calls for which `wrong` says so."""

    def __init__(self, wrong: Callable[[int], bool]) -> None:
        self.calls = 0
        self.wrong = wrong

    def __call__(self, gradients: Gradients) -> Gradients:
        self.calls += 1
        return scaled(1.5)(gradients) if self.wrong(self.calls) else gradients


def test_a_gradient_that_is_wrong_for_the_second_cotangent_alone(cpu: Device, run_mode: RunMode) -> None:
    wrong = FaultyDevice(cpu, gradient=Alternating(lambda call: call == 2))
    outcome = run_mode("grad", CASES["silu"], wrong, settings=Settings(cotangents=2))
    assert outcome.status is Status.FAIL
    assert "(cotangent 2)" in outcome.evidence[0].tensor


def with_zeros(case: Case) -> Case:
    """Two of a hundred elements are exactly zero, where relu has its kink."""
    values = np.random.default_rng(1).uniform(0.2, 1.0, 100) * np.random.default_rng(2).choice([-1, 1], 100)
    values[[17, 60]] = 0.0
    (a,) = case.inputs
    listed: Any = tuple(float(v) for v in values)
    return replace(case, inputs=(replace(a, init=Init("values", (("list", listed),))),))


RELU = with_zeros(make_case("out = relu(a)", a=(100, 1, 1, 1)))


@pytest.mark.parametrize("slope", [0.0, 0.4, 1.0])
def test_at_a_kink_any_slope_between_both_sides_is_right(slope: float, cpu: Device, run_mode: RunMode) -> None:
    ones = Settings(cotangent="ones")
    outcome = run_mode("grad", RELU, FaultyDevice(cpu, gradient=one_element(17, lambda _: slope)), settings=ones)
    assert outcome.status is Status.PASS, outcome.reason
    assert dict(outcome.counts)["kink"] == 2


@pytest.mark.parametrize("slope", [3.0, -2.0, float("inf"), float("nan")])
def test_a_kink_is_no_reason_to_pass(slope: float, cpu: Device, run_mode: RunMode) -> None:
    ones = Settings(cotangent="ones")
    outcome = run_mode("grad", RELU, FaultyDevice(cpu, gradient=one_element(17, lambda _: slope)), settings=ones)
    assert outcome.status is Status.FAIL
    assert outcome.evidence[0].index == (17, 0, 0, 0)


def test_flat_elements_are_counted(run_mode: RunMode) -> None:
    outcome = run_mode("grad", RELU, settings=Settings(cotangent="ones"))
    below = sum(value < 0 for value in dict(RELU.inputs[0].init.args)["list"])  # type: ignore[operator, union-attr]
    assert dict(outcome.counts)["flat"] == below


def test_a_wrong_gradient_on_a_flat_part_fails(cpu: Device, run_mode: RunMode) -> None:
    def everywhere(g: Array) -> Array:
        return np.where(g == 0, 1e-2, g)

    outcome = run_mode("grad", RELU, FaultyDevice(cpu, gradient=changed("a", everywhere)))
    assert outcome.status is Status.FAIL
