"""Parts of a graph over and over: they must really be computed, as often as they say, and nothing else with them."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pytest

from gradcheck.bindings.devices import Device
from gradcheck.bindings.tensor import Tensor
from gradcheck.bindings.timed import MOST_NODES, TimedProgram
from gradcheck.model.case import Case
from gradcheck.model.errors import LibraryError, Unsupported
from gradcheck.model.graph import Part
from tests.builders import Typed, make_case, sample

NE = (33, 3, 1, 1)


class OpenTimed(Protocol):
    """Opens a case and loads values into it."""

    def __call__(self, case: Case, cotangent: float | None = None) -> TimedProgram: ...


@pytest.fixture
def opened(cpu: Device) -> Iterator[OpenTimed]:
    programs: list[TimedProgram] = []

    def open_case(case: Case, cotangent: float | None = None) -> TimedProgram:
        program = cpu.open_timed(case, backward=cotangent is not None)
        programs.append(program)
        v = None if cotangent is None else np.full(tuple(reversed(program.ne)), cotangent)
        program.load(sample(case), v)
        return program

    yield open_case
    for program in programs:
        program.free()
        program.free()


def values(program: TimedProgram, tensor: Tensor) -> Any:
    return program._buffer.values(tensor)


@pytest.mark.parametrize("count", [1, 2, 5, 60])
def test_the_op_is_computed_as_often_as_asked(opened: OpenTimed, count: int) -> None:
    """In place, each computation goes on from the last: the result counts them. Loading computes once."""
    case = make_case("out = scale_inplace(a, 2.0)", a=NE)
    program = opened(case)
    work = program.repetition(Part.OP)
    work.resize(count)
    work.compute()
    np.testing.assert_array_equal(values(program, program._build.out), sample(case)["a"] * 2.0 ** (1 + count))


def test_a_count_can_grow_and_shrink(opened: OpenTimed) -> None:
    case = make_case("out = scale_inplace(a, 2.0)", a=NE)
    program = opened(case)
    work = program.repetition(Part.OP)
    for count in (3, 40, 2, 1):
        work.resize(count)
        work.compute()
    np.testing.assert_array_equal(values(program, program._build.out), sample(case)["a"] * 2.0**47)


@pytest.mark.parametrize(("part", "factor", "ops"), [(Part.OP, 0.5, 1), (Part.FORWARD, 2.0, 2)])
def test_the_last_op_or_the_whole_graph(opened: OpenTimed, part: Part, factor: float, ops: int) -> None:
    case = make_case("b = scale_inplace(a, 4.0)\nout = scale_inplace(b, 0.5)", a=NE)
    program = opened(case)
    work = program.repetition(part)
    work.resize(5)
    work.compute()
    assert work.ops == ops
    np.testing.assert_array_equal(values(program, program._build.out), sample(case)["a"] * 2.0 * factor**5)


def test_a_view_of_the_result_is_not_what_is_repeated(opened: OpenTimed) -> None:
    case = make_case("b = scale_inplace(a, 2.0)\nout = reshape_2d(b, 3, 33)", a=NE)
    program = opened(case)
    work = program.repetition(Part.OP)
    work.resize(4)
    work.compute()
    assert work.ops == 1
    np.testing.assert_array_equal(values(program, program._build.inputs["a"]), sample(case)["a"] * 2.0**5)


@pytest.mark.parametrize("graph", ["out = reshape_2d(a, 3, 33)", "out = a", "out = transpose(a)"])
def test_views_and_inputs_compute_nothing(opened: OpenTimed, graph: str) -> None:
    program = opened(make_case(graph, a=NE))
    assert program.repetition(Part.OP).ops == program.repetition(Part.FORWARD).ops == 0


def test_empty_tensors_compute_nothing(opened: OpenTimed) -> None:
    assert opened(make_case("out = silu(a)", a=(4, 0, 1, 1))).repetition(Part.OP).ops == 0


def test_backward_alone(opened: OpenTimed) -> None:
    """The gradients come again, the output does not."""
    case = make_case("out = mul(a, b)", a=NE, b=NE)
    program = opened(case, cotangent=3.0)
    for tensor in (program._build.out, *program._build.gradients.values()):
        assert tensor is not None
        program._buffer.fill(program._buffer.offset(tensor), tensor.nbytes, 0xFF)
    work = program.repetition(Part.BACKWARD)
    work.resize(7)
    work.compute()
    gradient = program._build.gradients["a"]
    assert gradient is not None
    np.testing.assert_allclose(values(program, gradient), 3.0 * sample(case)["b"], rtol=1e-6)
    assert np.isnan(values(program, program._build.out)).all()
    assert work.ops == 2


def test_backward_needs_a_backward_graph(opened: OpenTimed, cpu: Device) -> None:
    case = make_case("out = ceil(a)", a=NE)
    with pytest.raises(ValueError, match="without its backward graph"):
        opened(case).repetition(Part.BACKWARD)
    with pytest.raises(Unsupported):
        cpu.open_timed(case, backward=True)


def test_a_fused_graph_gives_what_it_gives_once(opened: OpenTimed) -> None:
    case = make_case("n = rms_norm(a, 1e-6)\nout = mul(n, b)", a=NE, b=NE)
    program = opened(case)
    want = values(program, program._build.out)
    program._buffer.fill(program._buffer.offset(program._build.out), program._build.out.nbytes, 0xFF)
    work = program.repetition(Part.FORWARD)
    work.resize(9)
    work.compute()
    np.testing.assert_array_equal(values(program, program._build.out), want)


def test_a_wrong_number_of_repetitions_is_noticed(opened: OpenTimed, monkeypatch: pytest.MonkeyPatch) -> None:
    program = opened(make_case("out = silu(a)", a=NE))
    work = program.repetition(Part.OP)
    ggml, add = program._library.ggml, program._library.ggml.ggml_graph_add_node
    added: list[Any] = []

    def forgetful(graph: Any, node: Any) -> None:
        added.append(node)
        if len(added) != 3:
            add(graph, node)

    monkeypatch.setattr(ggml, "ggml_graph_add_node", forgetful)
    with pytest.raises(LibraryError, match="a graph of 4 nodes where 5 were to be repeated"):
        work.resize(5)


def test_there_is_room_for_as_many_nodes_as_the_cpp_tool_has(opened: OpenTimed) -> None:
    a = Typed("f32", (1, 1, 1, 1), param=False)  # ggml counts a param among the nodes
    program = opened(make_case("b = silu(a)\nout = silu(b)", a=a))
    for part, most in ((Part.OP, MOST_NODES), (Part.FORWARD, MOST_NODES // 2)):
        work = program.repetition(part)
        assert work.most == most
        work.resize(most)
        work.compute()
        for count in (0, most + 1):
            with pytest.raises(ValueError, match="repetitions"):
                work.resize(count)
