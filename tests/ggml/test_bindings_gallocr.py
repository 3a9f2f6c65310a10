"""Programs through ggml's graph allocator: the same values and gradients in memory that is used again and again."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradcheck.bindings.devices import Device
from gradcheck.bindings.gallocr import GallocrProgram
from gradcheck.bindings.memory import Buffer
from gradcheck.bindings.program import Program
from gradcheck.model.case import Case
from gradcheck.model.errors import NoRoom, OutOfMemory
from gradcheck.modes.bench import Array
from tests.builders import Typed, make_case, sample

#: Chains, views as outputs and as gradients, a param that no gradient reaches, one that is used twice.
CASES: dict[str, Case] = {
    "chain": make_case("out = sqr(add(silu(mul_mat(a, b)), c))", a=(24, 6), b=(24, 7), c=(6, 7)),
    "second use": make_case("b = silu(a)\nout = mul(b, sqr(sin(b)))", a=(33, 5)),
    "view as output": make_case("out = permute(mul_mat(a, b), 1, 0, 2, 3)", a=(24, 6), b=(24, 7)),
    "view of an input": make_case("out = permute(a, 2, 0, 1, 3)", a=(3, 4, 5)),
    "the cotangent is the gradient": make_case("out = add(a, b)", a=(6, 4), b=(6, 1)),
    "no gradient": make_case("out = add(sgn(a), silu(b))", a=(6, 4), b=(6, 4)),
}
DEEP = make_case("out = " + "silu(" * 40 + "a" + ")" * 40, a=(64, 64))


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
        self.programs: list[Any] = []

    def __call__(self, case: Case, alloc: str = "gallocr", *, accumulate: bool = False) -> Any:
        program = self.device.open_allocated(case, alloc, accumulate=accumulate)
        self.programs.append(program)
        program.load(sample(case))
        return program


def cotangent(program: GallocrProgram | Program, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(0.5, 1.5, tuple(reversed(program.ne)))


def test_each_way_of_allocating_has_its_program(opened: OpenCase) -> None:
    kinds = {alloc: type(opened(CASES["chain"], alloc)).__name__ for alloc in ("distinct", "gallocr", "sched")}
    assert kinds == {"distinct": "Program", "gallocr": "GallocrProgram", "sched": "ScheduledProgram"}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_as_with_memory_of_their_own(name: str, opened: OpenCase) -> None:
    case = CASES[name]
    alone, program = opened(case, "distinct"), opened(case)
    assert program.ne == alone.ne
    for seed in range(3):  # a pass must not add to the one before
        v = cotangent(alone, seed)
        np.testing.assert_array_equal(program.forward(), alone.forward())
        want, found = alone.backward(v), program.backward(v)
        assert found.keys() == want.keys()
        for param, gradient in want.items():
            np.testing.assert_array_equal(found[param], gradient)
    assert program.changed_inputs() == []
    for declared in case.inputs:
        np.testing.assert_array_equal(program.stored(declared.name), sample(case)[declared.name])


def test_memory_is_used_again(opened: OpenCase) -> None:
    program = opened(DEEP)
    apart = sum(tensor.nbytes for tensor in program._build.tensors() if not tensor.is_view)
    # Backward needs the forward values, so those stay; all gradients share one place.
    assert 40 * 64 * 64 * 4 < program.nbytes < 0.6 * apart
    nodes = [node for node in program._build.nodes(program._graph) if node.op == "SILU_BACK"]
    assert len({node.pointer.contents.data for node in nodes}) < len(nodes) / 10


def test_an_op_works_in_the_memory_of_an_input(opened: OpenCase) -> None:
    case = make_case("out = add(scale(a, 2.0), b)", a=(64, 8), b=(64, 8))
    program = opened(case)
    tensors = program._build.inputs
    doubled = next(node for node in program._build.nodes(program._graph) if node.op == "SCALE")
    assert doubled.pointer.contents.data == tensors["a"].pointer.contents.data
    for _ in range(2):
        np.testing.assert_array_equal(program.forward(), 2 * sample(case)["a"] + sample(case)["b"])


def test_whole_numbers_and_inputs_that_are_not_used(opened: OpenCase) -> None:
    case = make_case("out = get_rows(a, rows)", a=(6, 8), rows=Typed("i32", (5,), param=False), c=(3,))
    program: Any = opened.device.open_allocated(case, "gallocr")
    opened.programs.append(program)
    values: dict[str, Any] = {**sample(case), "rows": np.array([7, 0, 3, 3, 1]).reshape(1, 1, 1, 5)}
    program.load(values)
    np.testing.assert_array_equal(program.forward()[0, 0], values["a"][0, 0, [7, 0, 3, 3, 1]])
    assert program.backward(cotangent(program, 0))["c"] is None


def test_what_nothing_wrote_is_nan_or_an_old_value(opened: OpenCase, monkeypatch: pytest.MonkeyPatch) -> None:
    apart, inside = opened(CASES["view as output"]), opened(CASES["chain"])
    assert np.isfinite(apart.forward()).all()
    monkeypatch.setattr(Device, "compute", lambda *_: None)
    assert np.isnan(apart.forward()).all()
    # An output that lies in an input's place shows that one.
    np.testing.assert_array_equal(inside.forward(), sample(CASES["chain"])["c"])


def test_an_input_that_changes_is_seen_where_nothing_else_lies(
    opened: OpenCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = opened(CASES["chain"])
    assert list(program._kept) == ["a"]  # the others are used up before the end
    wrong = np.ones(24 * 6 * 4, dtype=np.uint8)
    monkeypatch.setattr(Device, "compute", lambda *_: program._write(program._build.inputs["a"], wrong))
    program.forward()
    assert program.changed_inputs() == ["a"]
    program.load(sample(CASES["chain"]))
    assert program.changed_inputs() == []


@pytest.mark.parametrize("alloc", ["distinct", "gallocr", "sched"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_added_to_what_accumulators_hold(name: str, alloc: str, opened: OpenCase) -> None:
    case = CASES[name]
    plain, program = opened(case, "distinct"), opened(case, alloc, accumulate=True)
    v = cotangent(plain, 0)
    want = plain.backward(v)
    priors = {i.name: np.full(tuple(reversed(i.ne)), 3.0) for i in case.inputs}
    for held in (0.0, 3.0, 3.0):  # load leaves them at 0; each pass starts from what was loaded
        found = program.backward(v)
        for param, gradient in want.items():
            if gradient is None:
                assert found[param] is None
            else:
                np.testing.assert_allclose(found[param], gradient + held, rtol=1e-6, atol=1e-6)
        program.load_accumulators(priors)
    assert program.changed_inputs() == []
    assert program.overwrites() == []


def test_no_room_is_told_before_anything_is_allocated(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcheck.bindings.memory.device_memory", lambda *_: (1000, 1000))
    with pytest.raises(NoRoom, match=r"the graph takes .* on CPU, which has 1,000 bytes"):
        cpu.open_allocated(DEEP, "gallocr")


def test_an_allocation_that_fails_is_out_of_memory(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu.library.ggml, "ggml_gallocr_alloc_graph", lambda *_: False)
    with pytest.raises(OutOfMemory):
        cpu.open_allocated(DEEP, "gallocr")


def test_distinct_memory_takes_more(opened: OpenCase) -> None:
    buffer: Buffer = opened(DEEP, "distinct")._buffer
    assert opened(DEEP).nbytes < 0.6 * buffer.nbytes
