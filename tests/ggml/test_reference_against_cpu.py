"""The NumPy reference and ggml's CPU backend compute the same from the same inputs."""

import math
from fnmatch import fnmatchcase

import pytest

from gradcheck.bindings.devices import Device
from gradcheck.cases import Selection, select
from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.model.status import Status
from gradcheck.modes.bench import Program
from gradcheck.modes.held import held_inputs
from gradcheck.numerics.forward_metrics import difference
from gradcheck.numerics.picks import picked
from gradcheck.numerics.sampling import sample_inputs
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.dtypes import EPSILONS, Array

LARGEST = 200_000  # elements of all inputs together
EVERY = 5
MOST = 40  # cases of an op


def _known(case: Case) -> set[Status]:
    """How a case is known to end on the CPU, since a kernel there is wrong."""
    return {k.status for k in case.known if k.mode == "eval" and fnmatchcase("CPU", k.target.upper())}


def _by_op() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in SHIPPED:
        small = sum(math.prod(i.ne) for i in case.inputs) <= LARGEST
        if small and not case.skip and not _known(case):
            found.setdefault(case.op, []).append(case)
    return {op: cases[:: max(EVERY, len(cases) // MOST)] for op, cases in found.items()}


SHIPPED = select(Selection(), "eval")
CASES = _by_op()


def _limit(case: Case) -> float:
    """What the case allows; the CPU rounds the second factor of a product to the narrow type of the first."""
    limit = dict(case.limits).get("nmse", 1e-7)
    if case.op == "MUL_MAT":
        limit = max(limit, max(EPSILONS.get(i.type, 0) for i in case.inputs) ** 2 / 6)
    return limit


def _outputs(cpu: Device, case: Case) -> tuple[Array, Array]:
    """What the CPU makes of a case, and the reference: of the quantised inputs from what the CPU holds of them."""
    # First, so that what it does not have costs nothing.
    reference = ReferenceDevice().open(case)
    program = cpu.open(case)
    values = sample_inputs(case, 0)
    program.load(values)
    held = held_inputs(case, program, values)
    assert not held.faults
    reference.load(held.values)
    return _output(program, case), _output(reference, case)


def _output(program: Program, case: Case) -> Array:
    try:
        out = program.forward()
        if case.picks is None:
            return out
        elements, wrong = picked(out, program.stored(case.picks.source), ordered=case.picks.ordered)
        assert not wrong
        return elements
    finally:
        program.free()


def _nmse(got: Array, want: Array) -> float:
    """NaN where something is not finite on one side only."""
    assert got.shape == want.shape
    return difference(got, want, 0).nmse


@pytest.mark.parametrize("op", CASES)
def test_shipped_cases(cpu: Device, op: str) -> None:
    compared, wrong, refused = 0, [], ""
    for case in CASES[op]:
        try:
            got, want = _outputs(cpu, case)
        except Unsupported as refusal:
            refused = str(refusal)
            continue
        compared += 1
        if not _nmse(got, want) <= _limit(case):
            wrong.append((case.id, _nmse(got, want)))
    assert not wrong
    if not compared:
        pytest.skip(refused)


@pytest.mark.parametrize("case", [case for case in SHIPPED if Status.FAIL in _known(case)], ids=lambda case: case.id)
def test_the_reference_sees_what_the_cpu_gets_wrong(cpu: Device, case: Case) -> None:
    assert not _nmse(*_outputs(cpu, case)) <= _limit(case)
