"""Faults that a plain case cannot show, and the variants that are for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from gradcheck.model.case import Case
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Device
from gradcheck.variants.choose import variants_of
from tests.builders import make_case
from tests.faults.conftest import RunMode
from tests.faults.faulty import FaultyDevice, FaultyProgram, Gradients

SQR = make_case("out = sqr(a)", a=(16, 6, 2))
MUL = make_case("out = mul(a, b)", a=(16, 6, 2), b=(16, 6, 2))
SOFT_MAX = replace(make_case("out = soft_max(a)", a=(16, 6, 2)), op="SOFT_MAX")

#: What a wrong device makes of a program, a case and a cotangent.
Backward = Callable[[Any, Case, Array], Gradients]


@dataclass(frozen=True)
class WrongDevice(FaultyDevice):
    """A device whose backward pass knows the case: its faults show in some graphs only."""

    wrong: Backward | None = None

    def open(self, case: Case, *, backward: bool = False) -> FaultyProgram:
        program = self.device.open(case, backward=backward)
        return cast(FaultyProgram, _Wrong(program, case, self.wrong))


@dataclass
class _Wrong:
    program: Any
    case: Case
    wrong: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def backward(self, cotangent: Array) -> Gradients:
        return cast(Gradients, self.wrong(self.program, self.case, cotangent))


def full_registers_only(program: Any, _case: Case, v: Array) -> Gradients:
    """A kernel that forgets what is left of a row after its last register of eight."""

    def cut(g: Array) -> Array:
        wrong = g.copy()
        wrong[..., g.shape[-1] // 8 * 8 :] = 0
        return wrong

    return {name: cut(g) for name, g in program.backward(v).items()}


def second_needed(program: Any, _case: Case, v: Array) -> Gradients:
    """A rule of two sources that gives the first its gradient only where the second wants one too."""
    gradients: Gradients = program.backward(v)
    return gradients if "b" in gradients else {name: 0 * g for name, g in gradients.items() if g is not None}


def as_if_contiguous(program: Any, case: Case, v: Array) -> Gradients:
    """A kernel that reads a transposed gradient in the order of its memory."""
    if "cont(transpose(out))" in case.graph:
        v = v.reshape(*v.shape[:-2], v.shape[-1], v.shape[-2]).swapaxes(-1, -2).copy()
    return cast(Gradients, program.backward(v))


def last_one_wins(program: Any, case: Case, v: Array) -> Gradients:
    """A rule that sets the gradient of what it reads, where it should add to it."""
    gradients: Gradients = program.backward(v)
    return {"a": 0.5 * v} if case.variant == "second_consumer:before" else gradients


def whole_tensor(program: Any, case: Case, v: Array) -> Gradients:
    """A kernel that works on all of a tensor where it was given a view of it."""
    gradients: Gradients = program.backward(v)
    return {name: g if g is None or not case.variant else g + (g == 0) for name, g in gradients.items()}


def masked_by_a_factor(program: Any, _case: Case, v: Array) -> Gradients:
    """A kernel that multiplies by zero what a mask has taken out of a row."""
    x = program.stored("a")
    with np.errstate(invalid="ignore"):
        return {name: g + 0.0 * x.sum(axis=-1, keepdims=True) for name, g in program.backward(v).items()}


@pytest.mark.parametrize(
    ("plain", "variant", "wrong"),
    [
        (SQR, "tails:33", full_registers_only),
        (SQR, "sliced", full_registers_only),
        (SQR, "sliced", whole_tensor),
        (MUL, "alone:a", second_needed),
        (SQR, "strided_cotangent:transposed", as_if_contiguous),
        (SQR, "second_consumer:before", last_one_wins),
        (SOFT_MAX, "infinite", masked_by_a_factor),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_a_variant_catches_what_its_case_cannot(
    plain: Case, variant: str, wrong: Backward, cpu: Device, run_mode: RunMode
) -> None:
    def resized(case: Case, size: int) -> Case:
        return replace(case, inputs=tuple(replace(i, ne=(size, *i.ne[1:])) for i in case.inputs))

    (varied,) = (v for v in variants_of(plain, [variant.partition(":")[0]], resized) if v.variant == variant)
    target = WrongDevice(cpu, wrong=wrong)
    assert run_mode("grad", plain, target).status is Status.PASS
    assert run_mode("grad", varied).status is Status.PASS
    assert run_mode("grad", varied, target).status is Status.FAIL
