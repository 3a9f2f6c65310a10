"""Programs on the CPU: values, gradients, memory."""

import ctypes
import gc
import resource
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.bindings.devices import Device
from gradcheck.bindings.dtypes import decode, encode, to_bfloat16
from gradcheck.bindings.library import load
from gradcheck.bindings.program import Array, Program
from gradcheck.model.case import Case
from gradcheck.model.errors import NoRoom
from gradcheck.model.graph import Cost
from tests.builders import Typed, make_case, sample


@pytest.fixture(params=["host", "not host"])
def any_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests through memory that only ggml may touch, as a GPU's is."""
    if request.param == "not host":
        monkeypatch.setattr(load().ggml, "ggml_backend_buffer_is_host", lambda _buffer: False)


class OpenCase(Protocol):
    def __call__(self, case: Case, values: Mapping[str, NDArray[Any]], backward: bool = True) -> Program: ...


@pytest.fixture
def opened(cpu: Device) -> Iterator[OpenCase]:
    programs: list[Program] = []

    def open_case(case: Case, values: Mapping[str, NDArray[Any]], backward: bool = True) -> Program:
        program = cpu.open(case, backward=backward)
        programs.append(program)
        program.load(values)
        return program

    yield open_case
    for program in programs:
        assert program.overwrites() == []
        assert program.changed_inputs() == []
        program.free()
        program.free()


def gradient_of(name: str, gradients: Mapping[str, Array | None]) -> Array:
    found = gradients[name]
    assert found is not None
    return found


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


@pytest.mark.usefixtures("any_memory")
def test_silu(opened: OpenCase) -> None:
    case = make_case("out = silu(a)", a=(5, 7, 3, 2))
    values = sample(case)
    program = opened(case, values)
    a, v = values["a"].astype(float), np.random.default_rng(1).uniform(0.5, 1.5, (2, 3, 7, 5))
    assert program.ne == (5, 7, 3, 2)
    assert program.narrowest_eps == 2.0**-23
    assert program.cost == Cost(flops=0, bytes=2 * 4 * 210)
    np.testing.assert_array_equal(program.stored("a"), a)
    np.testing.assert_allclose(program.forward(), a * sigmoid(a), rtol=1e-5, atol=1e-6)
    for scale in (1, 2):  # the second pass must not add to the first
        gradient = gradient_of("a", program.backward(scale * v))
        want = scale * v * (sigmoid(a) + a * sigmoid(a) * (1 - sigmoid(a)))
        np.testing.assert_allclose(gradient, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(program.forward(), a * sigmoid(a), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("any_memory")
def test_mul_mat(opened: OpenCase) -> None:
    case = make_case("out = mul_mat(a, b)", a=(16, 4, 1, 1), b=(16, 3, 1, 1))
    values = sample(case)
    program = opened(case, values)
    a, b = values["a"][0, 0].astype(float), values["b"][0, 0].astype(float)
    np.testing.assert_allclose(program.forward()[0, 0], b @ a.T, rtol=1e-5, atol=1e-5)
    v = np.random.default_rng(1).uniform(0.5, 1.5, (1, 1, 3, 4))
    gradients = program.backward(v)
    np.testing.assert_allclose(gradient_of("a", gradients)[0, 0], v[0, 0].T @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient_of("b", gradients)[0, 0], v[0, 0] @ a, rtol=1e-5, atol=1e-5)


def test_soft_max_with_a_mask(opened: OpenCase) -> None:
    case = make_case("out = soft_max_ext(a, mask, 0.5, 0.0)", a=(8, 3, 2, 1), mask=Typed("f16", (8, 3, 1, 1), False))
    values = sample(case)
    program = opened(case, values)
    assert program.narrowest_eps == 2.0**-10
    x = 0.5 * values["a"].astype(float) + values["mask"].astype(np.float16).astype(float)
    y = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.testing.assert_allclose(program.forward(), y, rtol=1e-5, atol=1e-6)
    v = np.random.default_rng(1).uniform(0.5, 1.5, y.shape)
    gradients = program.backward(v)
    assert set(gradients) == {"a"}
    np.testing.assert_allclose(
        gradient_of("a", gradients), 0.5 * y * (v - (v * y).sum(-1, keepdims=True)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.usefixtures("any_memory")
def test_the_gradient_of_a_permuted_view_is_read_by_strides(opened: OpenCase) -> None:
    case = make_case("out = permute(a, 2, 0, 1, 3)", a=(3, 4, 5, 2))
    values = sample(case)
    program = opened(case, values)
    # ggml's axis i of the source becomes axis (2, 0, 1, 3)[i]; NumPy counts from the other end.
    want = np.transpose(values["a"], (0, 3, 1, 2))
    assert program.ne == (4, 5, 3, 2)
    np.testing.assert_array_equal(program.forward(), want)
    v = np.random.default_rng(1).uniform(0.5, 1.5, want.shape).astype(np.float32).astype(float)
    np.testing.assert_array_equal(gradient_of("a", program.backward(v)), np.transpose(v, (0, 2, 3, 1)))


def test_get_rows_adds_up_repeated_rows(opened: OpenCase) -> None:
    case = make_case("out = get_rows(a, rows)", a=(4, 6, 1, 1), rows=Typed("i32", (3, 1, 1, 1), False))
    values: dict[str, NDArray[Any]] = {**sample(case), "rows": np.array([2, 5, 2]).reshape(1, 1, 1, 3)}
    program = opened(case, values)
    np.testing.assert_array_equal(program.stored("rows").ravel(), [2, 5, 2])
    np.testing.assert_array_equal(program.forward()[0, 0], values["a"][0, 0, [2, 5, 2]])
    v = np.arange(12.0).reshape(1, 1, 3, 4)
    want = np.zeros((6, 4))
    np.add.at(want, [2, 5, 2], v[0, 0])
    np.testing.assert_array_equal(gradient_of("a", program.backward(v))[0, 0], want)


@pytest.mark.usefixtures("any_memory")
def test_in_place_begins_with_the_loaded_values_each_time(opened: OpenCase) -> None:
    case = make_case("out = scale_inplace(a, 2.0)", a=(33, 2, 1, 1))
    values = sample(case)
    program = opened(case, values, backward=False)
    for _ in range(3):
        np.testing.assert_array_equal(program.forward(), 2 * values["a"].astype(float))
    np.testing.assert_array_equal(program.stored("a"), values["a"])
    np.testing.assert_array_equal(program.forward(), 2 * values["a"].astype(float))


def test_cpy_into_an_input(opened: OpenCase) -> None:
    case = make_case("out = cpy(a, b)", a=(6, 2, 1, 1), b=Typed("f32", (4, 3, 1, 1), False))
    values = sample(case)
    program = opened(case, values)
    np.testing.assert_array_equal(program.forward().ravel(), values["a"].ravel())
    v = np.arange(12.0).reshape(1, 1, 3, 4)
    np.testing.assert_array_equal(gradient_of("a", program.backward(v)), v.reshape(1, 1, 2, 6))


def test_the_output_can_be_a_param(opened: OpenCase) -> None:
    case = make_case("out = a", a=(3, 1, 1, 1))
    program = opened(case, sample(case))
    np.testing.assert_array_equal(
        gradient_of("a", program.backward(np.array([1.0, 2, 3]).reshape(1, 1, 1, 3))).ravel(), [1, 2, 3]
    )


def test_no_gradient_for_an_input_that_is_not_used(opened: OpenCase) -> None:
    case = make_case("out = silu(a)", a=(3, 1, 1, 1), b=(3, 1, 1, 1))
    program = opened(case, sample(case))
    assert program.backward(np.ones((1, 1, 1, 3)))["b"] is None


def test_an_empty_tensor(opened: OpenCase) -> None:
    case = make_case("out = silu(a)", a=(4, 0, 1, 1))
    program = opened(case, sample(case))
    assert program.forward().shape == (1, 1, 0, 4)


@pytest.mark.parametrize(("kind", "bits"), [("f16", 10), ("bf16", 7), ("q8_0", 6), ("q4_0", 2), ("iq3_xxs", -1)])
def test_types_there_and_back(opened: OpenCase, kind: str, bits: int) -> None:
    case = make_case("out = cont(a)" if kind in ("f16", "bf16") else "out = get_rows(a, rows)",
                     a=Typed(kind, (256, 3, 1, 1), False), rows=Typed("i32", (3, 1, 1, 1), False))  # fmt: skip
    values: dict[str, NDArray[Any]] = {**sample(case), "rows": np.arange(3).reshape(1, 1, 1, 3)}
    program = opened(case, values, backward=False)
    stored = program.stored("a")
    np.testing.assert_allclose(stored, values["a"], atol=2.0**-bits)
    np.testing.assert_allclose(program.forward(), stored, rtol=1e-6, atol=1e-7)


def test_bfloat16_rounds_to_nearest_even() -> None:
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -np.inf, np.nan], dtype=np.float32)
    back = decode(load(), "bf16", encode(load(), "bf16", x, x.size))
    np.testing.assert_array_equal(back, [1, 1, 1 + 2**-6, 1 + 2**-7, -np.inf, np.nan])
    random = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    ggml = [load().ggml.ggml_fp32_to_bf16(float(value)).bits for value in random]
    np.testing.assert_array_equal(to_bfloat16(random), ggml)


def test_integers_are_rounded_and_large_halves_are_infinite() -> None:
    assert decode(load(), "i32", encode(load(), "i32", np.array([1.6, -2.0]), 2)).tolist() == [2, -2]
    assert decode(load(), "f16", encode(load(), "f16", np.array([1e9]), 1)).tolist() == [np.inf]


@pytest.mark.usefixtures("any_memory")
def test_a_write_behind_a_tensor_and_into_an_input_is_seen(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=(5, 1, 1, 1))
    program = cpu.open(case)
    values = sample(case)
    program.load(values)
    want = program.forward()
    pointer = program._build.out.pointer.contents
    ctypes.memset(pointer.data + 4 * 5 + 40, 0, 1)
    ctypes.memset(program._build.inputs["a"].pointer.contents.data, 0, 4)
    program.forward()
    assert program.overwrites() == ["out"]
    assert program.changed_inputs() == ["a"]
    np.testing.assert_array_equal(program.forward(), want)
    program.load(values)
    program.forward()
    assert program.overwrites() == program.changed_inputs() == []
    program.free()


@pytest.mark.usefixtures("any_memory")
def test_what_nothing_writes_is_nan(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case("out = silu(a)", a=(5, 1, 1, 1))
    program = cpu.open(case, backward=True)
    program.load(sample(case))
    program.forward()
    monkeypatch.setattr(type(cpu), "compute", lambda _self, _graph: None)
    assert np.isnan(program.forward()).all()
    assert np.isnan(gradient_of("a", program.backward(np.ones((1, 1, 1, 5))))).all()
    program.free()


def test_too_large_is_told_before_memory_is_touched(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=(1 << 30, 1 << 10, 1, 1))
    with pytest.raises(NoRoom, match=r"the graph takes 8192\.0 GiB on CPU, which has "):
        cpu.open(case)
    cpu.check(case, backward=True)


def test_misshapen_values(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=(5, 2, 1, 1))
    program = cpu.open(case)
    with pytest.raises(ValueError, match=r"a has shape \(10,\), the tensor takes \(1, 1, 2, 5\)"):
        program.load({"a": np.zeros(10)})
    program.free()


def test_opening_and_freeing_does_not_leak(cpu: Device) -> None:
    case = make_case("out = silu(a)", a=(10_000, 1, 1, 1))
    values, v = sample(case), np.ones((1, 1, 1, 10_000))

    def some(count: int) -> None:
        for _ in range(count):
            program = cpu.open(case, backward=True)
            program.load(values)
            program.backward(v)
            program.free()

    some(200)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(2000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4 * 1024  # KiB; one program holds 160 KiB of tensors
