"""A param with infinite elements: they are held and left out, and all others are judged."""

from dataclasses import replace

import numpy as np
import pytest

from gradcheck.bindings.devices import Device
from gradcheck.model.case import Case, Init
from gradcheck.model.job import Job, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.worker.equipment import Equipment
from gradcheck.worker.perform import perform
from tests.builders import Typed, make_case


def infinite(case: Case, data: str) -> Case:
    first, *others = case.inputs
    return replace(case, inputs=(replace(first, init=Init(data=data)), *others))


CASES = [
    infinite(make_case("out = scale(a, 3.0)", a=(9, 8, 2)), "infinite"),
    infinite(make_case("out = sqr(a)", a=(9, 8, 2)), "infinite"),
    infinite(make_case("out = add(a, b)", a=(9, 8, 2), b=Typed("f32", (9, 1, 2), param=False)), "infinite"),
    infinite(make_case("out = soft_max(a)", a=(9, 8, 2)), "negative_infinite"),
    infinite(make_case("out = cont(transpose(a))", a=(9, 8, 2)), "infinite"),
]


def outcome(cpu: Device, case: Case, **settings: object) -> Outcome:
    equipment = Equipment(MODES, lambda _name, _threads: cpu, lambda: pytest.fail("not asked for"))
    return perform(Job(0, "grad", case, "CPU", replace(Settings(), **settings)), equipment)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.graph)
@pytest.mark.parametrize("method", ["auto", "dense", "sampled", "directional"])
def test_every_method_judges_what_is_finite(cpu: Device, case: Case, method: str) -> None:
    found = outcome(cpu, case, method=method)
    assert found.status is Status.PASS, found.reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.graph)
def test_infinite_elements_are_counted_as_those_without_a_derivative(cpu: Device, case: Case) -> None:
    counts = dict(outcome(cpu, case).counts)
    expected = 1 if case.inputs[0].init.data == "negative_infinite" else 2
    assert counts["kink"] == expected
    assert counts["judged"] == counts["elements"] - expected


def test_no_other_element_is_forgiven(cpu: Device) -> None:
    found = outcome(cpu, CASES[0])
    assert all(np.isfinite(one.want) for one in found.evidence)
