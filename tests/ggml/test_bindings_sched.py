"""Programs through ggml's scheduler, on the CPU: values, gradients, memory that is reused, and where things run."""

import resource
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gradcheck.bindings.devices import Device, open_device
from gradcheck.bindings.sched import ScheduledProgram
from gradcheck.bindings.scheduler import Scheduler
from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.model.job import Settings
from gradcheck.model.result import Placement
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.modes.bench import Array, Bench
from tests.builders import Typed, make_case, sample

ROWS = Typed("i32", (5,))
#: Every case has its inputs in another way: floats, whole numbers beside them or alone, views, written in place.
CASES: dict[str, Case] = {
    "chain": make_case("out = sqr(add(silu(mul_mat(a, b)), c))", a=(24, 6), b=(24, 7), c=(6, 7)),
    "second use": make_case("b = silu(a)\nout = mul(b, sqr(sin(b)))", a=(33, 5)),
    "view as output": make_case("out = permute(mul_mat(a, b), 1, 0, 2, 3)", a=(24, 6), b=(24, 7)),
    "view of an input": make_case("out = permute(a, 2, 0, 1, 3)", a=(3, 4, 5)),
    "strided input": make_case("out = cont(permute(a, 0, 2, 1, 3))", a=(6, 4, 3)),
}


@pytest.fixture
def opened(cpu: Device) -> "Iterator[OpenCase]":
    opening = OpenCase(cpu)
    yield opening
    for program in opening.programs:
        program.free()
        program.free()


class OpenCase:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.programs: list[ScheduledProgram] = []

    def __call__(self, case: Case, values: dict[str, np.ndarray], backward: bool = False) -> ScheduledProgram:
        program = self.device.open_scheduled(case, backward=backward)
        self.programs.append(program)
        program.load(values)
        return program


def alone(device: Device, case: Case, v: Array | None = None) -> tuple[Array, dict[str, Array | None]]:
    """The output and the gradients, each tensor in memory of its own."""
    program = device.open(case, backward=v is not None)
    program.load(sample(case))
    out = program.forward()
    gradients = {} if v is None else program.backward(v)
    program.free()
    return out, gradients


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_as_with_memory_of_their_own(name: str, cpu: Device, opened: OpenCase) -> None:
    case = CASES[name]
    want, _ = alone(cpu, case)
    program = opened(case, sample(case))
    for _ in range(3):
        np.testing.assert_array_equal(program.forward(), want)
    assert program.ne == tuple(reversed(want.shape))
    assert program.changed_inputs() == []
    for declared in case.inputs:
        np.testing.assert_array_equal(program.stored(declared.name), sample(case)[declared.name])


@pytest.mark.parametrize("name", CASES)
def test_the_same_gradients(name: str, cpu: Device, opened: OpenCase) -> None:
    case = CASES[name]
    shape = alone(cpu, case)[0].shape
    program = opened(case, sample(case), backward=True)
    for seed in range(2):  # a second pass must not add to the first
        v = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
        out, gradients = alone(cpu, case, v)
        np.testing.assert_array_equal(program.forward(), out)
        found = program.backward(v)
        assert found.keys() == gradients.keys()
        for param, gradient in gradients.items():
            np.testing.assert_array_equal(found[param], gradient)


def test_whole_numbers_beside_floats_and_alone(opened: OpenCase) -> None:
    case = make_case("out = get_rows(a, rows)", a=(6, 8), rows=ROWS)
    values = {**sample(case), "rows": np.array([7, 0, 3, 3, 1]).reshape(1, 1, 1, 5)}
    program = opened(case, values)
    for _ in range(2):
        np.testing.assert_array_equal(program.forward()[0, 0], values["a"][0, 0, [7, 0, 3, 3, 1]])
    case = make_case('out = cast(rows, "f32")', rows=ROWS)
    program = opened(case, {"rows": values["rows"]})
    np.testing.assert_array_equal(program.forward(), values["rows"])


def test_an_op_in_place_starts_from_the_same_input_each_time(opened: OpenCase) -> None:
    case = make_case("out = add_inplace(a, b)", a=(6, 4), b=(6, 4))
    values = sample(case)
    program = opened(case, values)
    for _ in range(3):
        np.testing.assert_array_equal(program.forward(), values["a"] + values["b"])
    assert program.changed_inputs() == []


def test_an_output_without_elements(opened: OpenCase) -> None:
    case = make_case("out = silu(a)", a=(0, 4))
    assert opened(case, sample(case)).forward().size == 0


def test_placement_tells_every_node_that_computes(opened: OpenCase) -> None:
    case = make_case("out = transpose(sqr(permute(silu(a), 1, 0, 2, 3)))", a=(4, 3))
    program = opened(case, sample(case))
    assert program.placement == Placement((("SILU", "CPU"), ("SQR", "CPU")), splits=1, fallback="CPU")
    nodes = opened(CASES["second use"], sample(CASES["second use"]), backward=True).placement.nodes
    assert nodes[:4] == (("SILU", "CPU"), ("SIN", "CPU"), ("SQR", "CPU"), ("MUL", "CPU"))
    assert ("SILU_BACK", "CPU") in nodes[4:]


def test_what_nobody_takes_is_unsupported(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case("out = silu(a)", a=(4,))
    monkeypatch.setattr(cpu.library.ggml, "ggml_backend_supports_op", lambda *_: False)
    with pytest.raises(Unsupported, match=r"CPU does not take SILU\(f32 \[4,1,1,1\]\)"):
        cpu.open_scheduled(case)


def test_what_nothing_wrote_is_nan(opened: OpenCase, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened(CASES["chain"], sample(CASES["chain"]))
    assert np.isfinite(program.forward()).all()
    monkeypatch.setattr(Scheduler, "compute", lambda *_: None)
    assert np.isnan(program.forward()).all()


def test_an_input_that_changes_is_seen(opened: OpenCase, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["chain"]
    program = opened(case, sample(case))
    wrong = np.ones(24 * 6 * 4, dtype=np.uint8)

    def compute(*_: object) -> None:
        program._write(program._build.inputs["a"], wrong)

    monkeypatch.setattr(Scheduler, "compute", compute)
    program.forward()
    assert program.changed_inputs() == ["a"]
    program.load(sample(case))
    assert program.changed_inputs() == []


def test_nothing_is_left_of_many_programs(cpu: Device) -> None:
    case = CASES["second use"]
    values = sample(case)

    def some(count: int) -> None:
        for number in range(count):
            program = cpu.open_scheduled(case, backward=bool(number % 2))
            program.load(values)
            program.forward()
            program.free()

    some(200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(2000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * 1024  # KiB


@pytest.mark.parametrize("place", ["target", "cpu"])
def test_eval_on_the_cpu_meets_either_expectation(place: str) -> None:
    case = replace(CASES["chain"], placement=place)
    device = open_device("CPU")
    outcome = MODES["eval"](case, Bench(device, lambda: device, Settings(sched=True, backward=True), lambda: 0.0))
    device.close()
    assert (outcome.status, outcome.reason) == (Status.PASS, "")
    assert outcome.placement
    assert outcome.placement.devices == ("CPU",)
