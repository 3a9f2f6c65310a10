"""The NumPy reference and ggml's CPU backend compute the same from the same inputs."""

import math

import pytest

from gradcheck.bindings.devices import Device
from gradcheck.cases import Selection, select
from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.numerics.forward_metrics import mismatched_specials, nmse
from gradcheck.numerics.sampling import sample_inputs
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.dtypes import EPSILONS, Array

LARGEST = 200_000  # elements of all inputs together
EVERY = 5

#: Wrong on the CPU: each of them reads an input that is not contiguous as if it were.
WRONG_ON_THE_CPU = (
    "SUM(type=f32,ne=[33,256,1,1],permute=[1,0,2,3])",
    "IM2COL(form=strided_input,how=columns)",
    "IM2COL(form=strided_input,how=permuted)",
    "POOL_2D(form=strided_input,how=channels,pool_type=avg)",
    "POOL_2D(form=strided_input,how=channels,pool_type=max)",
)


def _by_op() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in select(Selection(), "eval"):
        if not case.skip and case.id not in WRONG_ON_THE_CPU and sum(math.prod(i.ne) for i in case.inputs) <= LARGEST:
            found.setdefault(case.op, []).append(case)
    return {op: cases[::EVERY] for op, cases in found.items()}


CASES = _by_op()


def _limit(case: Case) -> float:
    """What the case allows; the CPU rounds the second factor of a product to the narrow type of the first."""
    limit = dict(case.limits).get("nmse", 1e-7)
    if case.op == "MUL_MAT":
        limit = max(limit, max(EPSILONS.get(i.type, 0) for i in case.inputs) ** 2 / 6)
    return limit


def _output(device: Device | ReferenceDevice, case: Case) -> Array:
    program = device.open(case)
    try:
        program.load(sample_inputs(case, 0))
        return program.forward()
    finally:
        program.free()


@pytest.mark.parametrize("op", CASES)
def test_shipped_cases(cpu: Device, op: str) -> None:
    compared, wrong, refused = 0, [], ""
    for case in CASES[op]:
        try:
            want, got = _output(ReferenceDevice(), case), _output(cpu, case)
        except Unsupported as refusal:
            refused = str(refusal)
            continue
        compared += 1
        error = nmse(got, want)
        if not error <= _limit(case) or got.shape != want.shape or mismatched_specials(got, want).any():
            wrong.append((case.id, error))
    assert not wrong
    if not compared:
        pytest.skip(refused)


@pytest.mark.parametrize("name", WRONG_ON_THE_CPU)
def test_the_reference_sees_what_the_cpu_gets_wrong(cpu: Device, name: str) -> None:
    (case,) = [case for case in select(Selection(), "eval") if case.id == name]
    assert nmse(_output(cpu, case), _output(ReferenceDevice(), case)) > 0.1
