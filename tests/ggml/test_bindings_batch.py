"""Batches on the CPU: one element a copy, whole outputs back."""

import numpy as np
import pytest

from gradcheck.bindings.devices import Device
from gradcheck.bindings.library import load
from gradcheck.model.errors import InvalidCase
from tests.builders import InputSpec, Typed, make_case, sample


@pytest.fixture(params=["host", "not host", "not host, large"])
def any_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "host":
        monkeypatch.setattr(load().ggml, "ggml_backend_buffer_is_host", lambda _buffer: False)
    if request.param.endswith("large"):
        monkeypatch.setattr("gradcheck.bindings.batch._WHOLE_BYTES", 0)


F32 = (7, 3, 2, 1)


@pytest.mark.usefixtures("any_memory")
@pytest.mark.parametrize(
    ("graph", "inputs"),
    [
        ("out = silu(a)", {"a": F32}),
        ("out = mul_mat(a, b)", {"a": F32, "b": F32}),
        ("out = scale_inplace(a, 3.0)", {"a": F32}),
        ("out = cpy(a, b)", {"a": F32, "b": F32}),
        ("out = set_inplace(b, a, b.nb[1], b.nb[2], b.nb[3], 0)", {"a": F32, "b": (8, 3, 2, 1)}),
        ("out = permute(a, 1, 0, 2, 3)", {"a": F32}),
        ("out = cont(permute(a, 1, 0, 2, 3))", {"a": F32}),
        ("out = cont(a)", {"a": Typed("f16", (7, 3, 2, 1))}),
        ("out = cont(a)", {"a": Typed("bf16", (7, 3, 2, 1))}),
        ("out = sum(a)", {"a": F32}),
        ("out = argmax(reshape_2d(a, 7, 6))", {"a": F32}),
    ],
)
def test_a_batch_gives_what_single_programs_give(cpu: Device, graph: str, inputs: dict[str, InputSpec]) -> None:
    case = make_case(graph, **inputs)
    values = sample(case)
    program, batch = cpu.open(case), cpu.batch(case, values, 4)
    assert batch.copies == 4
    for elements in ([0, 41, 5], [3, 3, 3, 3], [7]):
        x = np.linspace(-1.5, 1.5, len(elements)).astype(np.float32)
        found = batch.evaluate("a", np.array(elements)[:, None], x[:, None]).copy()
        assert found.shape == (len(elements), np.prod(program.ne))
        for row, element, value in zip(found, elements, x, strict=True):
            moved = {**values, "a": values["a"].copy()}
            moved["a"].ravel()[element] = value
            program.load(moved)
            np.testing.assert_array_equal(row, program.forward().ravel())
    program.free()
    batch.free()
    batch.free()


def test_several_elements_of_a_copy_move_at_once(cpu: Device) -> None:
    case = make_case("out = scale(a, 2)", a=F32)
    values = sample(case)
    batch = cpu.batch(case, values, 3)
    elements = np.array([[0, 41, 5], [7, 7, 8]])
    x = np.array([[1, 2, 3], [4, 4, 5]], np.float32)
    found = batch.evaluate("a", elements, x).copy()
    for row, members, to in zip(found, elements, x, strict=True):
        moved = values["a"].ravel().astype(np.float32)
        moved[members] = to
        np.testing.assert_array_equal(row, 2 * moved)
    again = batch.evaluate("a", np.array([[0]]), values["a"].ravel()[:1, None].astype(np.float32))
    np.testing.assert_array_equal(again[0], 2 * values["a"].ravel().astype(np.float32))
    batch.free()


def test_outputs_on_a_host_are_read_without_a_copy(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=F32)
    batch = cpu.batch(case, sample(case), 4)
    found = batch.evaluate("a", np.arange(4)[:, None], np.zeros((4, 1), np.float32))
    assert found.dtype == np.float32
    assert not found.flags.owndata
    batch.free()


def test_too_many_elements(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=F32)
    batch = cpu.batch(case, sample(case), 2)
    with pytest.raises(ValueError, match="3 rows of elements for 2 copies"):
        batch.evaluate("a", np.arange(3)[:, None], np.zeros((3, 1), np.float32))
    batch.free()


def test_a_batch_of_many_copies_and_of_a_wrong_case(cpu: Device) -> None:
    case = make_case("out = silu(mul(a, a))", a=F32)
    batch = cpu.batch(case, sample(case), 3000)
    found = batch.evaluate("a", np.zeros((3000, 1), np.int64), np.zeros((3000, 1), np.float32))
    assert found.shape == (3000, 42)
    assert np.ptp(found, axis=0).max() == 0
    batch.free()
    with pytest.raises(InvalidCase):
        cpu.batch(make_case("out = mull(a, a)", a=F32), sample(case), 2)
