"""Quantised tensors in the NumPy reference: sizes, windows by bytes, what may be written."""

import subprocess
import sys

import numpy as np
import pytest

from gradcheck.model.case import Case
from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.dtypes import Array, narrowed, type_name
from gradcheck.reference.functions import call
from gradcheck.reference.quantised import dequantised, quantised
from tests.builders import Typed, make_case

#: Two matrices of three rows of 64: two blocks of 18 bytes each row.
Q = Typed("q4_0", (64, 3, 2))
VALUES = np.arange(2 * 3 * 64, dtype=float).reshape(1, 2, 3, 64)


def compute(case: Case, **values: Array) -> Array:
    program = ReferenceDevice().open(case)
    program.load(values)
    return program.forward()


def test_names_and_sizes_are_those_of_ggml() -> None:
    assert [type_name(word) for word in ("q4_K", "TYPE_Q4_K", "iq2_xxs", "TYPE_Q8_0")] == [
        "q4_K",
        "q4_K",
        "iq2_xxs",
        "q8_0",
    ]
    assert [call(name, ["q4_K"]) for name in ("blck_size", "type_size")] == [256, 144]
    assert call("row_size", ["TYPE_Q4_0", 64]) == 36
    assert ReferenceDevice().open(make_case("out = view_1d(a, nbytes(a) - 152, 0)", a=Q)).ne == (64, 1, 1, 1)


def test_an_input_is_what_it_was_given() -> None:
    assert np.array_equal(compute(make_case("out = a", a=Q), a=VALUES / 7), VALUES / 7)


@pytest.mark.parametrize(
    ("graph", "seen"),
    [
        ("out = view_2d(a, 64, 2, a.nb[1], a.nb[2])", VALUES[:, 1:, :2]),
        ("out = view_1d(a, 32, 18)", VALUES[:, :1, :1, 32:]),
        ("out = view_3d(a, 32, 3, 2, a.nb[1], a.nb[2], a.nb[0])", VALUES[..., 32:]),
        ("out = cont(permute(a, 0, 2, 1, 3))", VALUES.swapaxes(1, 2)),
        ("out = reshape_2d(a, 32, 12)", VALUES.reshape(1, 1, 12, 32)),
        ("out = transpose(transpose(a))", VALUES),
    ],
)
def test_windows_go_by_the_bytes_of_blocks(graph: str, seen: Array) -> None:
    assert np.array_equal(compute(make_case(graph, a=Q), a=VALUES), seen)


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        ("out = view_1d(a, 32, 16)", "not whole blocks of 18 bytes"),
        ("out = view_1d(a, 384, 18)", "18 behind the end"),
        ("out = cont(view_1d(a, 16, 0))", "not made of whole blocks of 32"),
        ("out = cont(transpose(a))", "not made of whole blocks of 32"),
    ],
)
def test_a_block_is_not_taken_apart(graph: str, text: str) -> None:
    with pytest.raises(InvalidCase, match=text):
        compute(make_case(graph, a=Q), a=VALUES)


def test_a_copy_to_a_quantised_type_holds_what_gguf_makes_of_it() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (1, 2, 3, 64))
    held = compute(make_case("out = cpy(b, a)", a=Q, b=(64, 3, 2)), a=VALUES, b=x)
    assert np.array_equal(held.ravel(), dequantised("q4_0", quantised("q4_0", x.astype(np.float32).ravel())))
    assert 0 < np.abs(held - x.astype(np.float32)).max() < 0.2
    assert narrowed("q4_0", np.zeros((0, 32))).shape == (0, 32)


def test_a_copy_within_a_type_is_not_quantised_again() -> None:
    """No block of q8_0 could hold these."""
    a = Typed("q8_0", (64, 3, 2))
    for graph in ("out = cpy(b, a)", "out = cont(b)", "out = concat(b, a, 1)", "out = cast(b, TYPE_Q8_0)"):
        out = compute(make_case(graph, a=a, b=a), a=VALUES, b=VALUES / 7)
        assert np.array_equal(out[:, :, :3], VALUES / 7), graph


def test_rows_that_are_not_set_stay_as_they_are() -> None:
    case = make_case("out = set_rows(a, b, i)", a=Typed("q8_0", (32, 3)), b=(32, 1), i=Typed("i64", (1,)))
    before = np.arange(96.0).reshape(1, 1, 3, 32) / 7
    row = np.linspace(-1, 1, 32).reshape(1, 1, 1, 32)
    out = compute(case, a=before, b=row, i=np.ones((1, 1, 1, 1)))
    assert np.array_equal(out[:, :, ::2], before[:, :, ::2])
    assert np.array_equal(out[:, :, 1:2], narrowed("q8_0", row.astype(np.float32).astype(float)))


@pytest.mark.parametrize(
    ("kind", "graph", "text"),
    [
        ("q4_K", "out = cpy(b, a)", "cannot write q4_K: gguf .* has no quantiser"),
        ("iq4_nl", "out = set_rows(a, b, i)", "cannot write iq4_nl"),
        ("q9_9", "out = a", "has no type q9_9: gguf .* does not know it"),
    ],
)
def test_what_gguf_cannot_do_is_unsupported(kind: str, graph: str, text: str) -> None:
    case = make_case(graph, a=Typed(kind, (256, 1)), b=(256, 1), i=Typed("i64", (1,)))
    with pytest.raises(Unsupported, match=text):
        ReferenceDevice().open(case)


def test_rows_of_a_new_tensor_are_whole_blocks() -> None:
    with pytest.raises(InvalidCase, match="rows of 40 elements of q4_0 are not made of whole blocks of 32"):
        ReferenceDevice().open(make_case("out = a", a=Typed("q4_0", (40,))))


def test_gguf_is_loaded_where_it_is_needed() -> None:
    code = "import sys, gradcheck.modes, gradcheck.reference; print('gguf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
