"""The NumPy reference as a device: what it takes, what it stores, in which order it computes."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.device import ReferenceProgram
from gradcheck.reference.dtypes import Array, loaded, narrowed
from gradcheck.reference.functions import FUNCTIONS, call, word
from tests.builders import InputSpec, Typed, make_case

#: An array in NumPy's order, or a pair of a type and an array.
Given = ArrayLike | tuple[str, ArrayLike]


def program(graph: str, /, **arrays: Given) -> ReferenceProgram:
    """A loaded program."""
    specs: dict[str, InputSpec] = {}
    values: dict[str, Array] = {}
    for name, given in arrays.items():
        kind, data = given if isinstance(given, tuple) else ("f32", given)
        array = np.array(data, dtype=float)
        values[name] = array.reshape((1, 1, 1, *array.shape)[-4:])
        specs[name] = Typed(kind, array.shape[::-1] or (1,))
    opened = ReferenceDevice().open(make_case(graph, **specs))
    opened.load(values)
    return opened


def compute(graph: str, /, **arrays: Given) -> Array:
    return program(graph, **arrays).forward()


def test_it_says_its_name_and_shape() -> None:
    opened = program("out = mul_mat(a, b)", a=np.ones((3, 2)), b=("f16", np.ones((5, 2))))
    assert ReferenceDevice().name == "numpy"
    assert opened.ne == (3, 5, 1, 1)
    assert opened.narrowest_eps == 2.0**-10
    assert opened.overwrites() == []


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ("f32", 0.1, 0.10000000149011612),
        ("f16", 1 + 2.0**-11, 1.0),  # a tie goes to the even neighbour
        ("f16", 1 + 3 * 2.0**-11, 1 + 2.0**-9),
        ("bf16", 1 + 2.0**-8, 1.0),
        ("bf16", 1 + 3 * 2.0**-8, 1 + 2.0**-6),
        ("bf16", float("-inf"), float("-inf")),
        ("i32", 2.6, 3.0),
        ("f16", 1e6, float("inf")),
    ],
)
def test_inputs_are_what_the_type_holds(kind: str, value: float, held: float) -> None:
    assert program("out = a", a=(kind, [value])).stored("a").ravel() == held


def test_results_are_rounded_to_their_type() -> None:
    assert narrowed("f16", np.array([1 + 2.0**-12])) == 1
    assert narrowed("i32", np.array([-2.7])) == -2
    assert narrowed("f32", np.array([0.1])) == 0.1
    assert np.isneginf(narrowed("f32", np.array([-1e39])))
    assert np.isnan(narrowed("bf16", np.array([np.nan])))
    assert loaded("f32", np.array([0.1], dtype=np.float64)).dtype == np.float64


def test_every_run_starts_from_what_was_loaded() -> None:
    opened = program("out = scale_inplace(a, 2.0)", a=[1, 2])
    assert opened.forward().ravel().tolist() == [2, 4]
    assert opened.forward().ravel().tolist() == [2, 4]
    assert opened.stored("a").ravel().tolist() == [1, 2]


def test_sources_are_computed_from_left_to_right() -> None:
    assert compute("out = add(scale_inplace(a, 2.0), a)", a=[1, 2]).ravel().tolist() == [4, 8]
    assert compute("out = add(scale(a, 1.0), scale_inplace(a, 2.0))", a=[1, 2]).ravel().tolist() == [3, 6]


def test_what_the_output_does_not_need_is_not_computed() -> None:
    assert compute("x = scale_inplace(a, 2.0)\nout = neg(a)", a=[1, 2]).ravel().tolist() == [-1, -2]


def test_what_it_cannot_do_is_unsupported() -> None:
    device = ReferenceDevice()
    case = make_case("out = neg(a)", a=(4,))
    for refused in (
        lambda: device.open(case, backward=True),
        lambda: device.batch(case, {}, 2),
        lambda: device.describe(case),
        lambda: device.open_timed(case),
        lambda: device.open(case).backward(np.ones((1, 1, 1, 4))),
        lambda: device.check(make_case("out = neg(a)", a=Typed("q4_K", (256,)))),
        lambda: device.check(make_case('out = unary(a, "UNARY_OP_NEW")', a=(4,))),
    ):
        with pytest.raises(Unsupported):
            refused()
    with pytest.raises(Unsupported, match="the NumPy reference has no flash_dance yet"):
        device.open(make_case("out = flash_dance(a)", a=(4,)))


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        ("out = add(a)", "add: missing a required argument"),
        ("out = add(a, b)", "cannot be repeated"),
        ("out = mul_mat(a, b)", "do not fit"),
        ("out = view_1d(a, 5, 8)", "4 behind the end"),
        ("out = view_1d(a, 2, 2)", "not whole elements"),
        ("out = reshape_1d(transpose(b), 15)", "not contiguous"),
        ("out = reshape_2d(b, 4, 4)", "has not the elements"),
        ("out = permute(a, 0, 1, 1, 2)", "no order of the dimensions"),
        ("out = 3", "not a tensor"),
        ("out = neg(OP_NONSENSE)", "unknown name"),
    ],
)
def test_nonsense_is_an_invalid_case(graph: str, text: str) -> None:
    with pytest.raises(InvalidCase, match=text):
        ReferenceDevice().open(make_case(graph, a=(6,), b=(5, 3)))


def test_a_row_that_does_not_exist_is_an_invalid_case() -> None:
    with pytest.raises(InvalidCase, match="row number"):
        compute("out = get_rows(a, i)", a=np.ones((3, 2)), i=("i32", [3]))


def test_words_stand_for_themselves() -> None:
    assert word("OP_POOL_MAX") == "OP_POOL_MAX"
    for unknown in ("op_pool_max", "NONSENSE"):
        with pytest.raises(KeyError):
            word(unknown)


def test_numbers_can_be_asked_of_tensors_and_types() -> None:
    assert call("row_size", ["f16", 8]) == call("row_size", ["TYPE_F16", 8]) == 16
    shape = compute(
        "out = view_1d(a, nelements(b) // nrows(b), nbytes(b) - element_size(b))", a=np.arange(9), b=[[1, 2]]
    )
    assert shape.ravel().tolist() == [1, 2]


def test_every_function_has_an_in_place_twin_that_does_the_same() -> None:
    a = np.linspace(0.5, 1.5, 6).reshape(2, 3)
    for name in FUNCTIONS:
        if not name.endswith("_inplace") or not name.startswith(("abs", "gelu", "sqr", "exp", "silu", "norm", "rms")):
            continue
        rest = ", 0.1" if "norm" in name else ""
        plain = compute(f"out = {name.removesuffix('_inplace')}(a{rest})", a=a)
        assert np.array_equal(plain, compute(f"x = {name}(a{rest})\nout = add(x, scale(a, 0.0))", a=a)), name
