"""Building graphs: functions by name, refusals that cost no process, rows of plain data."""

import ast
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from gradcheck.bindings.abort import Builder
from gradcheck.bindings.devices import Device, open_device
from gradcheck.bindings.library import library_info, load
from gradcheck.bindings.refusal import BackwardRefused, NoBackwardRule
from gradcheck.model.errors import Aborted, InvalidCase, Unsupported, UsageError
from tests.builders import InputSpec, Typed, make_case

A = (5, 2, 1, 1)


def invalid(cpu: Device, graph: str, **inputs: InputSpec) -> str:
    with pytest.raises(InvalidCase) as caught:
        cpu.open(make_case(graph, **(inputs or {"a": A})))
    return str(caught.value)


def test_a_refused_forward_op_names_call_reason_and_shapes(cpu: Device) -> None:
    said = invalid(cpu, "out = mul_mat(a, b)", a=A, b=(6, 2, 1, 1))
    assert said == (
        "mul_mat(a, b): ggml refuses: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed; "
        "a is f32 [5,2,1,1], b is f32 [6,2,1,1]"
    )


def test_an_unknown_function_has_a_suggestion(cpu: Device) -> None:
    assert "no function `sillu`" in invalid(cpu, "out = sillu(a)")
    assert "(did you mean silu?)" in invalid(cpu, "out = sillu(a)")


@pytest.mark.parametrize("name", ["new_tensor_1d", "get_first_tensor", "free", "set_zero", "backend_tensor_get"])
def test_functions_that_are_no_ops_cannot_be_called(cpu: Device, name: str) -> None:
    assert f"no function `{name}`" in invalid(cpu, f"out = {name}(a)")


def test_arity(cpu: Device) -> None:
    assert invalid(cpu, "out = mul_mat(a, a, a)") == "mul_mat takes 2 arguments (a, b), got 3"
    assert invalid(cpu, "out = silu()") == "silu takes 1 argument (a), got 0"


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("out = scale(a, a)", "scale: `s` must be a number, got a tensor (f32 [5,2,1,1])"),
        ("out = silu(None)", "silu: `a` must be a tensor, got None"),
        ("out = mul(a, 2)", "mul: `b` must be a tensor, got 2"),
        ("out = permute(a, 0, 1, 2, 1.5)", "permute: `axis3` must be an integer, got 1.5"),
        ("out = cast(a, 'f23')", "ggml has no type `f23` (did you mean f32?)"),
        ("out = pool_2d(a, OP_POOL_AVG, 2**40, 1, 1, 1, 0, 0)", "`k0` must be an integer from -2147483648"),
        ("out = a.ne[0]", "`out` is 5, not a tensor"),
        ("out = scale(a, OP_POLL)", "unknown name `OP_POLL`"),
    ],
)
def test_wrong_kinds(cpu: Device, graph: str, said: str) -> None:
    assert said in invalid(cpu, graph)


def test_what_ggml_has_not_finished_is_unsupported(cpu: Device) -> None:
    with pytest.raises(Unsupported, match=r"^ggml has not finished flash_attn_back: TODO: adapt to "):
        cpu.open(make_case("out = flash_attn_back(a, a, a, a, 0)", a=A))


def test_blocks_must_be_filled(cpu: Device) -> None:
    assert "does not fill blocks of 32" in invalid(cpu, "out = cont(a)", a=Typed("q4_0", (33, 1, 1, 1), False))


def test_words_setters_types_and_numbers(cpu: Device) -> None:
    case = make_case(
        """
        y = mul_mat(a, b)
        mul_mat_set_prec(y, PREC_F32)
        out = cast(scale(y, row_size('f32', a.ne[0])), kind)
        """.replace("        ", ""),
        {"kind": "f16"},
        a=A,
        b=A,
    )
    described = cpu.describe(case)
    rows, out = described.tensors, described.out
    assert rows[out][2] == "f16"
    assert rows[2][8] == "a"
    assert rows[3][8] == "41a00000"


def test_an_absent_mask_is_null(cpu: Device) -> None:
    rows = cpu.describe(make_case("out = soft_max_ext(a, mask, 1.0, 0.0)", {"mask": 0}, a=A)).tensors
    assert rows[-1][7] == (0,)


@pytest.mark.usefixtures("capfd")  # stderr is a file then, as a worker's is
@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("out = gelu(a)", "unsupported unary op for backward pass: GELU"),
        ("out = reglu_split(a, a)", "unsupported glu op for backward pass: REGLU"),
        ("out = norm(a, 0.1)", "unsupported ggml op for backward pass: NORM"),
        ("out = swiglu(a)", "backward pass only implemented for split swiglu"),
        ("out = soft_max_ext(a, m, 1.0, 0.0)", "backward pass for softmax mask not implemented"),
        ("out = scale_inplace(a, 2.0)", "ggml has no backward for in-place operations"),
    ],
)
def test_no_backward_rule(cpu: Device, graph: str, reason: str) -> None:
    case = make_case(graph, a=(6, 2, 1, 1), m=(6, 2, 1, 1))
    with pytest.raises(NoBackwardRule) as caught:
        cpu.open(case, backward=True)
    assert str(caught.value) == reason
    cpu.open(case).free()


def test_an_assert_while_building_backward_is_told_apart(cpu: Device) -> None:
    case = make_case("out = cont(permute(a, 1, 0, 2, 3))", a=Typed("bf16", (6, 2, 1, 1)))
    with pytest.raises(BackwardRefused) as caught:
        cpu.open(case, backward=True)
    assert str(caught.value).startswith("ggml aborts while building the backward graph: GGML_ASSERT(")
    assert isinstance(caught.value, Aborted)


def test_an_index_computed_from_a_param_needs_no_gradient(cpu: Device) -> None:
    case = make_case("out = get_rows(reshape_2d(a, 1, 6), argsort_top_k(a, 3))", a=(6, 1, 1, 1))
    program = cpu.open(case, backward=True)
    program.load({"a": np.array([[[[3.0, 1.0, 6.0, 2.0, 5.0, 4.0]]]])})
    program.forward()
    gradient = program.backward(np.ones((1, 1, 3, 1)))["a"]
    assert gradient is not None
    assert gradient.ravel().tolist() == [0, 0, 1, 0, 1, 1]
    program.free()


def test_a_case_without_a_path_to_a_param(cpu: Device) -> None:
    with pytest.raises(Unsupported, match="no input that is differentiated"):
        cpu.open(make_case("out = silu(a)", a=Typed("f32", (5, 1, 1, 1), False)), backward=True)
    with pytest.raises(InvalidCase, match="depends on no input"):
        cpu.open(make_case("out = silu(b)", a=A, b=Typed("f32", (5, 1, 1, 1), False)), backward=True)


@pytest.mark.usefixtures("capfd")  # stderr is a file then, as a worker's is
def test_refusals_in_a_row_cost_no_process(cpu: Device) -> None:
    before = threading.active_count()
    for size in range(1, 51):
        case = make_case("out = gelu(a)", a=(size, 1, 1, 1))
        with pytest.raises(NoBackwardRule, match="GELU"):
            cpu.check(case, backward=True)
        cpu.check(case)
    # Graphs that differ in shapes alone are refused without another abort, which would park a thread.
    assert threading.active_count() <= before + 2


@pytest.mark.usefixtures("capfd")
def test_aborts_in_a_row_cost_no_process(cpu: Device) -> None:
    case = make_case("out = gelu(a)", a=A)
    for _ in range(50):
        load().no_rule.clear()
        with pytest.raises(NoBackwardRule, match="GELU"):
            cpu.check(case, backward=True)
    cpu.check(case)


def test_the_builder_is_one_thread_and_carries_exceptions() -> None:
    builder = Builder()
    first, second = builder.run(threading.get_ident), builder.run(threading.get_ident)
    assert first == second != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        builder.run(lambda: 1 // 0)
    assert builder.run(threading.get_ident) == first


def test_an_abort_elsewhere_ends_the_process_with_its_message() -> None:
    program = """
from gradcheck.bindings.library import load
ggml = load().ggml
context = ggml.ggml_init(ggml.ggml_init_params(mem_size=10000, mem_buffer=None, no_alloc=True))
a, b = ggml.ggml_new_tensor_1d(context, 0, 5), ggml.ggml_new_tensor_1d(context, 0, 6)
ggml.ggml_mul_mat(context, a, b)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == -6
    assert "ggml-abort: " in ended.stderr
    assert ended.stderr.strip().endswith("GGML_ASSERT(ggml_can_mul_mat(a, b)) failed")


#: From the reference list of eval cases, as lists.
REFERENCE = [
    (
        "out = silu(a)",
        [["NONE", "a", "f32", [5, 7, 11, 13], [4, 20, 140, 1540], 1, 0, [], ""],
         ["SILU", "out", "f32", [5, 7, 11, 13], [4, 20, 140, 1540], 0, 0, [0], "a"]],
    ),
    (
        "src_view_slice = view_4d(src, 2, 1, 5, 7, src.nb[1], src.nb[2], src.nb[3], 8)\nout = cont(src_view_slice)",
        [["NONE", "src", "f32", [2, 3, 5, 7], [4, 8, 24, 120], 1, 0, [], ""],
         ["VIEW", "src_view_slice", "f32", [2, 1, 5, 7], [4, 8, 24, 120], 0, 8, [0], "8"],
         ["CONT", "out", "f32", [2, 1, 5, 7], [4, 8, 8, 40], 0, 0, [1], ""]],
    ),
    (
        "src_permuted = permute(src, 0, 3, 1, 2)\ndst_permuted = permute(dst, 0, 2, 1, 3)\n"
        "out = cpy(src_permuted, dst_permuted)",
        [["NONE", "src", "f32", [1, 2, 3, 4], [4, 4, 8, 24], 1, 0, [], ""],
         ["NONE", "dst", "f32", [1, 3, 4, 2], [4, 4, 12, 48], 0, 0, [], ""],
         ["PERMUTE", "src_permuted", "f32", [1, 3, 4, 2], [4, 8, 24, 4], 0, 0, [0], "0,3,1,2"],
         ["PERMUTE", "dst_permuted", "f32", [1, 4, 3, 2], [4, 12, 4, 48], 0, 0, [1], "0,2,1,3"],
         ["CPY", "out", "f32", [1, 4, 3, 2], [4, 12, 4, 48], 0, 0, [2, 3], ""]],
    ),
    (
        "out = rope_ext(a, pos, None, 128, 0, 0, 10000.0, 1.0, 0.0, 1.0, 1.0, 1.0)",
        [["NONE", "a", "f32", [128, 40, 2, 1], [4, 512, 20480, 40960], 1, 0, [], ""],
         ["NONE", "pos", "i32", [2, 1, 1, 1], [4, 8, 8, 8], 0, 0, [], ""],
         ["ROPE", "out", "f32", [128, 40, 2, 1], [4, 512, 20480, 40960], 0, 0, [0, 1],
          "0,80,0,0,0,461c4000,3f800000,0,3f800000,3f800000,3f800000"]],
    ),
    (
        "out = soft_max_ext(a, None, 1.0, 0.0)\nsoft_max_add_sinks(out, sinks)",
        [["NONE", "a", "f32", [16, 16, 1, 1], [4, 64, 1024, 1024], 0, 0, [], ""],
         ["NONE", "sinks", "f32", [1, 1, 1, 1], [4, 4, 4, 4], 0, 0, [], ""],
         ["SOFT_MAX", "out", "f32", [16, 16, 1, 1], [4, 64, 1024, 1024], 0, 0, [0, -1, 1], "3f800000"]],
    ),
    (
        "out = pool_2d(input, OP_POOL_AVG, 1, 1, 1, 1, 0, 1)",
        [["NONE", "input", "f32", [10, 10, 3, 1], [4, 40, 400, 1200], 1, 0, [], ""],
         ["POOL_2D", "out", "f32", [10, 12, 3, 1], [4, 40, 480, 1440], 0, 0, [0], "1,1,1,1,1,0,1"]],
    ),
    (
        "out = scale_bias_inplace(a, 2.0, 1.0)",
        [["NONE", "a", "f32", [10, 10, 10, 10], [4, 40, 400, 4000], 1, 0, [], ""],
         ["SCALE", "out", "f32", [10, 10, 10, 10], [4, 40, 400, 4000], 0, 0, [0], "40000000,3f800000"]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "rows"), REFERENCE)
def test_rows_are_the_reference_lists(cpu: Device, graph: str, rows: list[list[Any]]) -> None:
    leaves = {row[1]: Typed(row[2], tuple(row[3]), bool(row[5])) for row in rows if row[0] == "NONE"}
    case = make_case(graph, **leaves)
    described = cpu.describe(case)
    found, out = described.tensors, described.out
    assert ast.literal_eval(repr(found).replace("(", "[").replace(")", "]").replace(",]", "]")) == rows
    assert out == len(rows) - 1


def test_rows_with_the_backward_graph(cpu: Device) -> None:
    described = cpu.describe(make_case("out = silu(a)", a=A), backward=True)
    rows, out = described.tensors, described.out
    assert [row[0] for row in rows] == ["NONE", "SILU", "NONE", "SILU_BACK"]
    assert out == 1
    assert rows[3][7] == (2, 0)


def test_library_and_devices() -> None:
    info = library_info()
    assert info.ggml_version.count(".") == 2
    assert "CPU" in [device.name for device in info.devices]
    assert info.path.endswith((".so", ".dylib"))
    assert load() is load()
    device = open_device("cpu")
    assert device.name == "CPU"
    device.close()
    with pytest.raises(UsageError, match=r"no device cuda9.*it has .*CPU"):
        open_device("cuda9")


@pytest.mark.parametrize("graph", ["out = sgn(a)", "out = step(a)", "out = silu(sgn(a))"])
def test_piecewise_constant_ops_have_no_gradient(cpu: Device, graph: str) -> None:
    program = cpu.open(make_case(graph, a=A), backward=True)
    program.load({"a": np.ones((1, 1, 2, 5))})
    assert program.backward(np.ones((1, 1, 2, 5))) == {"a": None}
    program.free()


def test_a_missing_gradient_that_ggml_would_read_ends_no_process(cpu: Device) -> None:
    with pytest.raises(BackwardRefused, match="no gradient for `b` as source 1 of CPY"):
        cpu.check(make_case("out = cpy(a, b)", a=A, b=A), backward=True)
    # Here `a` is read for its shape and has a gradient from elsewhere.
    case = make_case("out = conv_2d(a, b, 1, 1, 0, 0, 1, 1)", a=(3, 3, 2, 2), b=(6, 6, 2, 1))
    cpu.check(case, backward=True)
