"""Every planted wrong gradient must end as a FAIL; the same cases without a fault must pass."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gradcheck.model.case import Case, Init
from gradcheck.model.job import Settings
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Device
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs
from tests.builders import make_case
from tests.faults.conftest import RunMode
from tests.faults.faulty import (
    FaultyDevice,
    GradientFault,
    changed,
    one_element,
    scaled,
    swapped,
    without_last_row,
)

CASES: dict[str, Case] = {
    "silu": make_case("out = silu(a)", a=(50, 20, 5, 1)),
    "soft_max": make_case("out = soft_max(a)", a=(33, 7, 2, 1)),
    "mul_mat": make_case("out = mul_mat(a, b)", a=(24, 16, 1, 1), b=(24, 16, 1, 1)),
    "add_broadcast": make_case("out = add(a, b)", a=(16, 6, 4, 2), b=(16, 1, 4, 1)),
    "repeat": make_case("out = repeat_4d(a, 12, 12, 2, 1)", a=(6, 6, 1, 1)),
    "square": make_case("out = mul(a, b)", a=(16, 16, 1, 1), b=(16, 16, 1, 1)),
}

# Faults that make sense for any case.
GENERAL: dict[str, GradientFault] = {
    "a factor of 3": scaled(3),
    "a factor of 1.1": scaled(1.1),
    "a factor of 1.01": scaled(1.01),
    "a factor of 0.99": scaled(0.99),
    "a factor of 0": scaled(0),
    "the sign": scaled(-1),
    "one NaN": one_element(5, lambda _: float("nan")),
    "one infinity": one_element(5, lambda _: float("inf")),
    "one element tripled": one_element(17, lambda g: 3 * g),
    "one element zero": one_element(17, lambda _: 0.0),
    "the last element tripled": one_element(-1, lambda g: 3 * g),
    "no gradient": changed("a", lambda _: None),
    "the last row zero": changed("a", without_last_row),
    "a shift by one": changed("a", lambda g: np.roll(g, 1)),
    "reversed": changed("a", lambda g: np.ascontiguousarray(g[..., ::-1])),
    "sign of every other": changed("a", lambda g: g * (1 - 2 * (np.arange(g.size).reshape(g.shape) % 2))),
}

# What the diagnosis must say of each, whatever the case.
SAID: dict[str, str] = {
    "a factor of 3": "is 3 times the numeric gradient everywhere",
    "a factor of 1.1": "is 1.1 times the numeric gradient everywhere",
    "a factor of 1.01": "is 1.01 times the numeric gradient everywhere",
    "a factor of 0.99": "is 0.99 times the numeric gradient everywhere",
    "a factor of 0": "is 0 everywhere",
    "the sign": "is the negative of the numeric gradient everywhere",
    "one NaN": "is NaN at [5, 0, 0, 0] alone",
    "one infinity": "is infinite at [5, 0, 0, 0] alone",
    "one element tripled": "may be 3 times the numeric gradient at [",
    "one element zero": "is 0 at [",
    "the last element tripled": "may be 3 times the numeric gradient at [",
    "no gradient": "",
    "the last row zero": "is 0 in the last row (i1 = ",
    "a shift by one": "is the numeric gradient shifted by 1 element in memory everywhere",
    "reversed": "is the numeric gradient reversed along i0 everywhere",
    "sign of every other": "is the negative of the numeric gradient",
}


@pytest.mark.parametrize("name", CASES)
def test_without_a_fault_it_passes(name: str, run_mode: RunMode) -> None:
    for seed in range(3):
        outcome = run_mode("grad", CASES[name], settings=Settings(seed=seed))
        assert outcome.status is Status.PASS, outcome.reason
        assert outcome.diagnosis == ()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fault", GENERAL)
def test_a_general_fault_is_caught(name: str, fault: str, cpu: Device, run_mode: RunMode) -> None:
    outcome = run_mode("grad", CASES[name], FaultyDevice(cpu, gradient=GENERAL[fault]))
    assert outcome.status is Status.FAIL, fault
    assert outcome.reason
    assert outcome.evidence
    assert SAID[fault] in " ".join(outcome.diagnosis), outcome.diagnosis


@pytest.mark.parametrize("at", [0, 1234, 4999])
@pytest.mark.parametrize("change", [lambda g: 1.1 * g, lambda g: -g, lambda _: 0.0, lambda g: g + 0.5])
def test_one_wrong_element_in_five_thousand(
    at: int, change: Callable[[float], float], cpu: Device, run_mode: RunMode
) -> None:
    case = CASES["silu"]
    assert np.prod(case.inputs[0].ne) == 5000
    outcome = run_mode("grad", case, FaultyDevice(cpu, gradient=one_element(at, change)))
    assert outcome.status is Status.FAIL
    worst = outcome.evidence[0]
    assert worst.tensor == "a"
    assert worst.index == (at % 50, at // 50 % 20, at // 1000, 0)
    assert f"at {list(worst.index)} alone: 1 of 5000 elements" in outcome.diagnosis[0]


def first_slice_only(g: Array) -> Array:
    return g / 12  # b is added to 6 rows and 2 batches: what one of them gives


def second_half_of_rows_zero(g: Array) -> Array:
    wrong = g.copy()
    wrong.reshape(-1, g.shape[-1])[50:] = 0
    return wrong


@pytest.mark.parametrize(
    ("name", "fault", "said"),
    [
        ("add_broadcast", changed("b", lambda g: np.repeat(g, 6, axis=2)), "b: the gradient is larger along i1: a sum"),
        ("add_broadcast", changed("b", first_slice_only), "b: backprop is 1/12 times the numeric gradient"),
        ("add_broadcast", changed("b", first_slice_only), "1/(the repetitions of b in the cotangent): perhaps a mean"),
        ("repeat", changed("a", lambda g: np.tile(g, (1, 2, 2, 2))), "larger along i0 and i1 and i2: a sum over"),
        ("repeat", changed("a", lambda g: g.swapaxes(2, 3)), "transposed: i0 and i1 swapped everywhere"),
        ("square", changed("a", lambda g: g.swapaxes(2, 3)), "transposed: i0 and i1 swapped everywhere"),
        ("square", swapped("a", "b"), "a: backprop is the numeric gradient of b everywhere"),
        ("mul_mat", changed("a", lambda g: g.swapaxes(2, 3)), "a: the gradient is transposed, it seems"),
        ("mul_mat", changed("b", np.zeros_like), "b: backprop is 0 everywhere"),
        ("mul_mat", changed("a", np.zeros_like), "a: backprop is 0 everywhere"),
        ("mul_mat", swapped("a", "b"), "b: backprop is the numeric gradient of a everywhere"),
        ("soft_max", changed("a", lambda g: g + 1e-2), "is the numeric gradient plus 0.01 everywhere"),
        ("soft_max", changed("a", lambda g: g[..., ::-1, :]), "is the numeric gradient reversed along i1 everywhere"),
        ("mul_mat", changed("b", lambda g: 2 * g), "b: backprop is 2 times the numeric gradient (as if it was added"),
        ("silu", changed("a", lambda g: np.where(np.arange(50) < 48, g, 0)), "is 0 where i0 >= 48, the tail behind"),
        ("silu", changed("a", second_half_of_rows_zero), "is 0 in rows 50 to 99 of 100"),
        ("silu", changed("a", second_half_of_rows_zero), "the rows of thread 2 of 2"),
    ],
)
def test_a_fault_of_one_op_is_caught(
    name: str, fault: GradientFault, said: str, cpu: Device, run_mode: RunMode
) -> None:
    outcome = run_mode("grad", CASES[name], FaultyDevice(cpu, gradient=fault))
    assert outcome.status is Status.FAIL
    assert said in " ".join(outcome.diagnosis), outcome.diagnosis


def test_what_backprop_took_instead_is_recognised(cpu: Device, run_mode: RunMode) -> None:
    """Inputs, output and cotangent are at hand: rules that forget a factor give what the rule of another op gives."""
    case = CASES["square"]
    v = sample_cotangent("random", (1, 1, 16, 16), generator(0, case.id, "cotangent"))
    x = sample_inputs(case, 0)
    for made, said in (
        (lambda _: v, "a: backprop is the cotangent itself everywhere"),
        (lambda g: g * x["b"], "a: backprop is the numeric gradient times the input b"),
        (lambda _: v * x["a"], "a: backprop is the numeric gradient of b everywhere"),
        (lambda g: g + v * x["a"] * g.sum(3, keepdims=True), "a: backprop is wrong everywhere"),
        (lambda g: g + x["a"] * g.sum(3, keepdims=True), "plus a number that depends on i1 alone times the input a"),
    ):
        outcome = run_mode("grad", case, FaultyDevice(cpu, gradient=changed("a", made)))
        assert said in " ".join(outcome.diagnosis), outcome.diagnosis


def test_the_diagnosis_is_of_the_cotangent_that_shows_the_error(cpu: Device, run_mode: RunMode) -> None:
    fault = changed("a", lambda g: -g)
    outcome = run_mode("grad", CASES["silu"], FaultyDevice(cpu, gradient=fault), Settings(cotangents=3))
    assert outcome.diagnosis == (
        "a: backprop is the negative of the numeric gradient everywhere: 5000 of 5000 elements",
    )


def test_each_limit_alone_catches_a_factor(cpu: Device, run_mode: RunMode) -> None:
    loose = {"maa": 2.0, "element": 10.0, "rel_l2": 10.0}
    target = FaultyDevice(cpu, gradient=scaled(1.1))
    for name in loose:
        limits = tuple((other, limit) for other, limit in loose.items() if other != name)
        outcome = run_mode("grad", CASES["silu"], target, Settings(limits=limits))
        assert outcome.status is Status.FAIL
        assert name in outcome.reason
    outcome = run_mode("grad", CASES["silu"], target, Settings(limits=tuple(loose.items())))
    assert outcome.status is Status.PASS


def test_a_permuted_gradient_passes_the_sum_loss_and_not_ours(cpu: Device, run_mode: RunMode) -> None:
    """The reason for a random cotangent: a sum has the gradient 1 everywhere, whatever its order."""
    target = FaultyDevice(cpu, gradient=changed("a", lambda g: np.roll(g, 7)))
    case = make_case("out = scale(a, 2)", a=(40, 3, 1, 1))
    assert run_mode("grad", case, target, Settings(cotangent="ones")).status is Status.PASS
    assert run_mode("grad", case, target).status is Status.FAIL


def test_a_gradient_of_zero_is_vacuous_unless_the_case_says_so(run_mode: RunMode) -> None:
    case = make_case("out = scale(a, 0)", a=(40, 3, 1, 1))
    assert run_mode("grad", case).status is Status.VACUOUS


def test_kinks_under_half_of_the_elements_are_vacuous(run_mode: RunMode) -> None:
    # Half of the values lie closer to the kink of relu than the smallest step.
    case = make_case("out = relu(a)", a=(40, 1, 1, 1))
    near = replace(case.inputs[0], init=Init("values", (("list", (1.0, 1e-6)),)))
    outcome = run_mode("grad", replace(case, inputs=(near,)))
    assert outcome.status is Status.VACUOUS, outcome.reason
    assert dict(outcome.counts)["kink"] == 20


def test_a_difference_that_is_zero_everywhere_is_vacuous(run_mode: RunMode) -> None:
    assert run_mode("grad", make_case("out = relu(sub(a, a))", a=(40, 1, 1, 1))).status is Status.VACUOUS
