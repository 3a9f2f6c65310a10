"""Errors planted into random gradients, and what the diagnosis says of each."""

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics.diagnosis import Compared, Tensor, diagnose

Array = NDArray[np.float64]

#: NumPy's order: ne = [33, 6, 4, 2].
SHAPE = (2, 4, 6, 33)
SQUARE = (1, 1, 16, 16)
EVERYWHERE = "everywhere"


def random(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def rounded(n: Array) -> Array:
    """A right backprop: numeric gradients have errors of their own."""
    noise: Array = n * (1.0 + 1e-6 * np.random.default_rng(99).normal(size=n.shape))
    return noise


def compared(
    a: Array,
    n: Array,
    name: str = "a",
    *,
    elements: NDArray[np.int64] | None = None,
    kinks: NDArray[np.bool_] | None = None,
    tolerance: float = 5e-3,
    uncertainty: float = 1e-5,
    gradient_shape: tuple[int, ...] | None = SHAPE,
) -> Compared:
    at = np.arange(n.size) if elements is None else elements
    u = np.full(at.size, uncertainty)
    return Compared.of(
        name,
        n.shape,
        at,
        (a.ravel()[at].astype(np.float64), n.ravel()[at], u),
        np.ones(at.size, dtype=np.bool_) if kinks is None else ~kinks.ravel()[at],
        tolerance=tolerance,
        gradient_shape=n.shape if gradient_shape == SHAPE else gradient_shape,
    )


def only(a: Array, n: Array, tensors: tuple[Tensor, ...] = (), **options: object) -> str:
    """The one line that is said."""
    lines = diagnose([compared(a, n, **options)], tensors)  # type: ignore[arg-type]
    assert len(lines) == 1, lines
    return lines[0]


def with_part(change: Callable[[Array], Array | float], *where: slice | int) -> Callable[[Array], Array]:
    def fault(g: Array) -> Array:
        wrong = g.copy()
        wrong[(..., *where)] = change(g[(..., *where)])
        return wrong

    return fault


def negative(g: Array) -> Array:
    return -g


def zero(g: Array) -> Array:
    return 0.0 * g


@pytest.mark.parametrize("shape", [SHAPE, SQUARE, (1, 1, 1, 3), (1, 1, 1, 1)])
def test_nothing_is_said_of_what_is_right(shape: tuple[int, ...]) -> None:
    n = random(shape)
    assert diagnose([compared(rounded(n), n), compared(n, n, "b")]) == ()


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (2, "is 2 times"),
        (3, "is 3 times"),
        (0.5, "is 1/2 times"),
        (1 / 3, "is 1/3 times"),
        (-1, "is the negative of"),
        (-2, "is -2 times"),
        (1.5, "is 1.5 times"),
        (2 / 3, "is 2/3 times"),
        (1.1, "is 1.1 times"),
        (1.01, "is 1.01 times"),
        (0.99, "is 0.99 times"),
        (7.31, "is 7.31 times"),
        (1 / 50, "is 1/50 times"),
        (1000, "is 1000 times"),
        (np.sqrt(2), "is sqrt(2) times"),
        (np.log(2), "is ln(2) times"),
        (1e-6, "is 1e-06 times"),
    ],
)
def test_a_factor_and_its_name(factor: float, words: str) -> None:
    n = random()
    line = only(factor * rounded(n), n)
    assert line.startswith(f"a: backprop {words} the numeric gradient")
    assert EVERYWHERE in line


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1 / 33, "1/ne[0]: perhaps a mean in place of the sum"),
        (6, "ne[1]: perhaps a sum in place of the mean"),
        (1 / np.sqrt(33), "that is 1/sqrt(ne[0])"),
        (1 / 11, "1/ne[0] of b: perhaps a mean"),
        (1 / 7, "1/(the repetitions of a in the output): perhaps a mean"),
    ],
)
def test_a_factor_that_is_a_length_of_the_case(factor: float, words: str) -> None:
    n, other = random(), random((1, 1, 1, 11))
    output = Tensor("the output", np.zeros((14, 4, 6, 33)))
    lines = diagnose([compared(factor * rounded(n), n), compared(other, other, "b")], [output])
    assert len(lines) == 1
    assert words in lines[0]


def test_a_factor_of_two_for_one_param_is_an_accumulation() -> None:
    n, other = random(), random((1, 1, 5, 5))
    lines = diagnose([compared(other, other, "a"), compared(2 * n, n, "b")])
    assert "b: backprop is 2 times the numeric gradient (as if it was added twice for this param alone" in lines[0]


def test_params_with_the_same_error_share_a_line() -> None:
    n, m = random(), random(seed=1)
    assert diagnose([compared(3 * n, n), compared(3 * m, m, "b")]) == (
        "a, b: backprop is 3 times the numeric gradient everywhere: 1584 of 1584 elements",
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (np.zeros_like, "is 0 everywhere"),
        (with_part(zero, 5, slice(None)), "is 0 in the last row (i1 = 5): 264 of 1584"),
        (with_part(negative, 0, slice(None)), "is the negative of the numeric gradient in the first row (i1 = 0)"),
        (with_part(negative, 3, slice(None)), "is the negative of the numeric gradient in row i1 = 3"),
        (with_part(negative, 32), "in the last column (i0 = 32), the tail behind the last whole 32 of each row"),
        (with_part(zero, slice(30, None)), "is 0 where i0 >= 30: 144 of"),
        (with_part(zero, slice(None, 4)), "is 0 where i0 <= 3: 192 of"),
        (with_part(zero, slice(7, 9)), "is 0 where i0 is 7 to 8: 96 of"),
        (with_part(zero, slice(None, None, 4)), "is 0 in every 4th column (i0 = 0, 4, ...)"),
        (with_part(lambda g: 2 * g, 3, slice(None), slice(None)), "is 2 times the numeric gradient"),
        (with_part(lambda g: g + 1, 3, slice(None), slice(None)), "plus 1 in the last plane (i2 = 3)"),
        (lambda g: np.concatenate([g[:1], 0 * g[1:]]), "is 0 in the last batch (i3 = 1)"),
        (with_part(zero, slice(2, 4), slice(8, 16)), "is 0 at [8..15, 2..3, *, *]: 128 of"),
        (with_part(zero, [1, 2, 4], slice(None)), "is 0 where i1 is 1, 2 or 4"),  # type: ignore[arg-type]
        (lambda g: g + 0.25, "is the numeric gradient plus 0.25 everywhere"),
        (lambda g: g - 0.01, "is the numeric gradient minus 0.01 everywhere"),
        (np.abs, "is the absolute value of the numeric gradient everywhere"),
    ],
)
def test_what_is_wrong_and_where(fault: Callable[[Array], Array], words: str) -> None:
    n = random()
    assert words in only(fault(rounded(n)), n)


def test_every_other_element_in_memory() -> None:
    n = random()
    a = rounded(n)
    a.ravel()[1::2] *= -1
    assert "the negative of the numeric gradient at every 2 elements in memory, from element 1 on" in only(a, n)


def test_a_run_in_memory_and_a_triangle() -> None:
    n = random()
    a = rounded(n)
    a.ravel()[1500:] = 0
    assert "is 0 from element 1500 on in memory: 84 of" in only(a, n)
    n = random(SQUARE)
    i1, i0 = np.indices((16, 16))
    assert "is 0 where i0 > i1: 120 of 256" in only(np.where(i0 > i1, 0.0, n), n)
    assert "is 3 times the numeric gradient where i0 = i1: 16 of" in only(np.where(i0 == i1, 3.0 * n, n), n)


@pytest.mark.parametrize(("threads", "thread"), [(2, 2), (3, 1), (4, 3)])
def test_the_share_of_a_thread(threads: int, thread: int) -> None:
    n = random((1, 1, 24, 10))
    a, each = rounded(n), 24 // threads
    a[..., each * (thread - 1) : each * thread, :] = 0
    assert f"the rows of thread {thread} of {threads}: {each * 10} of 240" in only(a, n)


def test_the_last_share_of_rows_through_all_planes_is_shorter() -> None:
    n = random((1, 3, 7, 5))
    a = rounded(n)
    a.reshape(21, 5)[18:] = 0  # 21 rows for 4 threads: 6, 6, 6 and 3
    assert "in rows 18 to 20 of 21" in only(a, n) or "where i1 >= 4" in only(a, n) or "[*, 4..6, 2, *]" in only(a, n)
    assert "the rows of thread 4 of 4" in only(a, n)


def test_the_second_half_of_each_row() -> None:
    n = random((1, 1, 5, 12))
    assert "where i0 >= 6, the second half of each row" in only(with_part(negative, slice(6, None))(n), n)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda g: g[..., ::-1], "reversed along i0"),
        (lambda g: g[..., ::-1, :], "reversed along i1"),
        (lambda g: g.ravel()[::-1].reshape(g.shape), "reversed along i0 and i1 and i2 and i3"),
        (lambda g: g.swapaxes(2, 3).reshape(g.shape), "transposed: i0 and i1 swapped in memory"),
        (lambda g: g.swapaxes(1, 2).reshape(g.shape), "transposed: i1 and i2 swapped in memory"),
        (lambda g: g.transpose(0, 3, 1, 2).reshape(g.shape), "permuted: in the places of i0, i1, i2 are i1, i2, i0"),
        (lambda g: np.roll(g, -1), "shifted by 1 element in memory"),
        (lambda g: np.roll(g, -2, axis=3), "shifted along i0 (at i0 it is numeric at i0 + 2, cyclic)"),
        (lambda g: np.roll(g, 1, axis=2), "shifted along i1 (at i1 it is numeric at i1 - 1, cyclic)"),
    ],
)
def test_the_right_values_in_the_wrong_order(order: Callable[[Array], Array], words: str) -> None:
    n = random()
    assert f"is the numeric gradient {words} everywhere" in only(order(rounded(n)), n)


def test_a_shift_that_leaves_rubbish_behind() -> None:
    n = random()
    a = np.roll(rounded(n), -1, axis=3)
    a[..., -1] = 7.0
    assert "shifted along i0 (at i0 it is numeric at i0 + 1)" in only(a, n)


def test_a_square_transposed() -> None:
    n = random(SQUARE)
    assert "is the numeric gradient transposed: i0 and i1 swapped everywhere" in only(rounded(n).swapaxes(2, 3), n)


def test_a_permutation_and_what_it_keeps() -> None:
    n, rng = random(SQUARE), np.random.default_rng(5)
    a = rounded(n)
    said = "has the values of the numeric gradient in other places"
    assert f"{said} (i0 stays the same: rows have changed places)" in only(a[..., rng.permutation(16), :], n)
    assert f"{said} (each within its row)" in only(rng.permuted(a, axis=3), n)
    assert f"{said} everywhere" in only(rng.permutation(a.ravel()).reshape(a.shape), n)
    two = a.copy()
    two[..., [3, 9], :] = a[..., [9, 3], :]
    assert "where i1 is 3 or 9: 32 of 256" in only(two, n)


def test_what_is_the_same_along_an_axis() -> None:
    n = random()
    spread = np.broadcast_to
    assert "is the sum of the numeric gradient along i0" in only(spread(n.sum(3, keepdims=True), n.shape), n)
    assert "is the mean of the numeric gradient along i2" in only(spread(n.mean(1, keepdims=True), n.shape), n)
    assert "is the numeric gradient at i1 = 0, repeated" in only(spread(n[:, :, :1], n.shape), n)
    assert "is constant along i1, unlike the numeric gradient" in only(spread(random(seed=3)[:, :, :1], n.shape), n)


def test_the_gradient_of_another_param() -> None:
    p, q = random(), random(seed=1)
    first, second = diagnose([compared(q, p, "a"), compared(p, q, "b")])
    assert first.startswith("a: backprop is the numeric gradient of b everywhere: 15")
    assert second.startswith("b: backprop is the numeric gradient of a everywhere: 15")
    assert (
        "the numeric gradient of b, in another shape"
        in diagnose([compared(q, p), compared(p.reshape(1, 1, 16, 99), q.reshape(1, 1, 16, 99), "b")])[0]
    )


def at_hand() -> tuple[Tensor, ...]:
    words = ("the cotangent", "the output", "the input a")
    return tuple(Tensor(word, random(seed=seed)) for seed, word in enumerate(words, start=10))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda _, v: v["the cotangent"], "is the cotangent itself"),
        (lambda _, v: v["the input a"], "is the input a itself"),
        (lambda _, v: v["the cotangent"] * v["the input a"], "is the cotangent times the input a"),
        (lambda n, v: n * v["the input a"], "is the numeric gradient times the input a (a factor too many"),
        (lambda n, v: n / v["the input a"], "is the numeric gradient divided by the input a"),
        (lambda n, v: n + 3 * v["the output"], "is the numeric gradient plus a number times the output"),
        (
            lambda n, v: n + n.sum(3, keepdims=True) * v["the output"],
            "plus a number that is constant along i0 times the output (a term is missing, or one too many is there)",
        ),
    ],
)
def test_what_backprop_may_have_returned(made: Callable[..., Array], words: str) -> None:
    n, tensors = random(), at_hand()
    assert words in only(made(n, {tensor.words: tensor.values for tensor in tensors}), n, tensors)


def test_a_cotangent_that_is_read_in_the_wrong_order() -> None:
    x, v = random(), random((2, 4, 33, 6), seed=1)
    n = x * v.swapaxes(2, 3)
    line = only(x * v.reshape(SHAPE), n, (Tensor("the cotangent", v),))
    assert "is what it would be with the cotangent read as if it was contiguous (strides are ignored" in line
    v = random(SQUARE, seed=1)
    n = random(SQUARE) * v.swapaxes(2, 3)
    assert "as if it was contiguous" in only(random(SQUARE) * v, n, (Tensor("the cotangent", v),))


def test_a_cotangent_of_other_elements() -> None:
    x, v = random((1, 3, 5, 6)), random((1, 3, 5, 6), seed=1)
    n, rng = x * v, np.random.default_rng(4)
    line = only(x * rng.permutation(v.ravel()).reshape(v.shape), n, (Tensor("the cotangent", v),), uncertainty=1e-6)
    assert "is what it would be with other elements of the cotangent (strides are ignored" in line
    line = only(x * random(v.shape, 9), n, (Tensor("the cotangent", v),), uncertainty=1e-6)
    assert "no simple pattern" in line


def test_elements_of_the_cotangent_from_other_places() -> None:
    v = random((1, 4, 6, 12)).astype(np.float32).astype(np.float64)
    n, a = v[:, 1:3, 2:4, 4:8], v.ravel()[40:56].reshape(1, 2, 2, 4)
    line = only(a, n, (Tensor("the cotangent", v),))
    assert "elements of the cotangent, from other places than those that belong there, everywhere" in line
    assert "negatives of elements of the cotangent" in only(-a, -n, (Tensor("the cotangent", v),))
    assert "no simple pattern" in only(a * (1 + 1e-6), n, (Tensor("the cotangent", v),))


def test_rubbish_next_to_zero_is_no_factor() -> None:
    n = random()
    tiny = random(seed=4) * 1e-44
    assert "backprop is next to 0 (4.1e-44 at most) everywhere" in only(tiny, n)


def test_one_term_of_a_sum_over_repetitions() -> None:
    v = random((2, 4, 6, 33))
    n = v.sum((1, 2), keepdims=True)
    cotangent = (Tensor("the cotangent", v),)
    line = only(v[:, :1, :1], n, cotangent)
    assert "is one term of the sum over the repetitions (the cotangent, first along i2 and first along i1)" in line
    assert "(the sum along i2 and i1 is missing)" in line
    assert "last along i1" in only(v.sum(1, keepdims=True)[:, :, -1:], n, cotangent)
    x = random(seed=4)
    tensors = (*cotangent, Tensor("the input b", x))
    n = (v * x).sum(1, keepdims=True)
    assert "(the cotangent times the input b, first along i2)" in only((v * x)[:, :1], n, tensors)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda n: n * random((2, 4, 6, 1), 7), "times a number that is constant along i0 (a scale or a norm"),
        (lambda n: n + random((2, 4, 6, 1), 7), "plus a number that is constant along i0 (a term is missing"),
        (lambda n: n * random((1, 1, 6, 1), 7), "times a number that depends on i1 alone"),
        (lambda n: n + random((1, 1, 1, 33), 7), "plus a number that depends on i0 alone"),
    ],
)
def test_factors_and_terms_of_a_row(made: Callable[[Array], Array], words: str) -> None:
    n = random()
    assert f"is the numeric gradient {words}" in only(made(n), n)


def test_low_precision_is_noise_and_no_factor() -> None:
    n, rng = random(), np.random.default_rng(3)
    bf16 = n * (1 + rng.uniform(-1, 1, n.shape) * 2.0**-8)
    line = only(bf16, n, tolerance=1e-3)
    assert "has errors of random signs, in proportion to each element, 0.0023 of the gradient" in line
    assert "(low precision, as bf16 would round)" in line
    f16 = n * (1 + rng.uniform(-1, 1, n.shape) * 2.0**-11)
    assert "as f16 would round" in only(f16, n, tolerance=1e-4)
    even = only(n + 0.01 * rng.normal(size=n.shape), n)
    assert "errors of random signs, of one size at all elements, 0.01 of the gradient (low precision)" in even


@pytest.mark.parametrize(("size", "share"), [(1.0, 50), (0.5, 20), (2.0, 80)])
def test_a_part_of_a_sum(size: float, share: int) -> None:
    kept, lost = random(), size * random(seed=1)
    line = only(kept, kept + lost)
    assert "backprop may lack a part of the sum, about" in line
    assert abs(int(re.findall(r"(\d+)%", line)[0]) - share) <= 3
    line = only(kept + 2 * lost, kept + lost)
    assert "backprop may count a part of the sum twice, about" in line
    assert abs(int(re.findall(r"(\d+)%", line)[0]) - share) <= 3


@pytest.mark.parametrize("seed", range(5))
def test_what_is_unrelated_gets_no_explanation(seed: int) -> None:
    for shape in (SHAPE, SQUARE, (1, 1, 1, 7), (1, 2, 1, 300)):
        n, a = random(shape, seed), random(shape, seed + 50)
        tensors = tuple(Tensor(t.words, random(shape, seed + 70 + k)) for k, t in enumerate(at_hand()))
        for line in (only(a, n, tensors), only(n + a, n, tensors), only(n * np.abs(a), n, tensors)):
            assert line.startswith("a: backprop is wrong everywhere"), line
            assert "no simple pattern" in line


def test_scattered_errors_are_counted_and_boxed() -> None:
    n, rng = random(), np.random.default_rng(2)
    at = rng.choice(n.size, 40, replace=False)
    a = rounded(n)
    a.ravel()[at] = rng.normal(size=40)
    assert "is wrong at scattered elements: 40 of 1584 elements; no simple pattern" in only(a, n)
    a = rounded(n)
    a[0, 2:, 1:5, 4:9] = np.where(rng.random((2, 4, 5)) < 0.5, rng.normal(size=(2, 4, 5)), a[0, 2:, 1:5, 4:9])
    assert "is wrong at scattered elements within [4..8, 1..4, 2..3, 0..0" in only(a, n).replace(", 0]", ", 0..0]")


def test_two_errors_are_told_apart() -> None:
    n = random()
    a = rounded(n)
    a[..., :10] = 0
    a[..., 20:] *= -1
    assert diagnose([compared(a, n)]) == (
        "a: backprop is 0 where i0 <= 9: 480 of 1584 elements",
        "a: backprop is the negative of the numeric gradient where i0 >= 20: 624 of 1584 elements",
    )


def test_not_finite_elements_are_told_and_left_out() -> None:
    n = random()
    a = 3 * rounded(n)
    a[..., 32] = np.nan
    assert diagnose([compared(a, n)]) == (
        "a: backprop is NaN in the last column (i0 = 32), the tail behind the last whole 32 of each row: "
        "48 of 1584 elements",
        "a: backprop is 3 times the numeric gradient everywhere: 1536 of 1536 elements",
    )
    assert "is infinite at [0, 0, 0, 0] alone" in only(np.where(np.arange(n.size).reshape(n.shape) == 0, np.inf, n), n)
    assert "is NaN everywhere" in only(np.full(n.shape, np.nan), n)


def test_a_numeric_gradient_that_is_not_finite_is_told_apart() -> None:
    n = random()
    a = 3 * rounded(n)
    n[0, 0, 2, 5] = np.nan
    assert diagnose([compared(a, n)]) == (
        "a: the numeric gradient is NaN at [5, 2, 0, 0] alone: 1 of 1584 elements "
        "(forward is so, or a step leaves the domain of the op)",
        "a: backprop is 3 times the numeric gradient everywhere: 1583 of 1583 elements",
    )


def test_a_forward_pass_that_reads_too_little() -> None:
    n = random()
    a = rounded(n)
    n[..., 3:, :] = 0
    line = only(a, n)
    assert "is not 0 though the forward result does not change" in line
    assert "where i1 >= 3" in line


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((2, 4, 33, 6), "the gradient is transposed, it seems: the lengths of i0 and i1 have changed places"),
        ((4, 4, 12, 33), "the gradient is larger along i1 and i3: a sum over the repetitions may be missing"),
        ((2, 4, 6, 1), "the gradient is smaller along i0: a repetition may be missing"),
        ((1, 1, 48, 33), "the gradient is one of another shape with as many elements: a reshape may be missing"),
    ],
)
def test_a_gradient_of_another_shape(shape: tuple[int, ...], words: str) -> None:
    n = random()
    assert words in only(np.zeros_like(n), n, gradient_shape=shape)


def test_nothing_is_said_of_a_gradient_that_is_missing_or_of_an_odd_shape() -> None:
    n = random()
    assert diagnose([compared(0 * n, n, gradient_shape=None)]) == ()
    assert diagnose([compared(0 * n, n, gradient_shape=(2, 4, 6, 31))]) == ()


def test_a_single_element_is_little_evidence() -> None:
    one = np.full((1, 1, 1, 1), 1.7)
    assert only(3 * one, one) == "a: backprop may be 3 times the numeric gradient everywhere: 1 of 1 elements"
    line = only(1.2345 * one, one)
    assert "times the numeric gradient" not in line
    assert line.endswith("it is 1.23 times numeric there")
    # Whatever lies at hand is some multiple of one number.
    tensors = (Tensor("the cotangent", one * 1.2345),)
    assert "cotangent" not in only(1.2345 * one, one, tensors)
    few = random((1, 1, 1, 3))
    assert only(7.31 * few, few).startswith("a: backprop looks like 7.31 times")


def test_one_wrong_element_among_many() -> None:
    n = random()
    a = rounded(n)
    a.ravel()[700] *= 3
    assert only(a, n) == "a: backprop may be 3 times the numeric gradient at [7, 3, 3, 0] alone: 1 of 1584 elements"
    a.ravel()[700] = 1.234 * n.ravel()[700]
    assert "is wrong at [7, 3, 3, 0] alone: 1 of 1584 elements; it is 1.23 times numeric there" in only(a, n)


@pytest.mark.parametrize("size", [300, 150])
def test_a_sample_shows_what_all_elements_do(size: int) -> None:
    n = random()
    elements = np.random.default_rng(1).choice(n.size, size, replace=False)
    assert f"is 3 times the numeric gradient everywhere: {size} of {size} elements" in only(3 * n, n, elements=elements)
    last = with_part(negative, 5, slice(None))(n)
    assert "is the negative of the numeric gradient in the last row (i1 = 5)" in only(last, n, elements=elements)
    assert "transposed: i0 and i1 swapped" in only(n.swapaxes(2, 3).reshape(n.shape), n, elements=elements)


def test_kinks_and_what_is_not_told_from_zero_do_not_disturb() -> None:
    n, rng = random(), np.random.default_rng(8)
    kinks = rng.random(n.shape) < 0.2
    a = np.where(kinks, rng.normal(size=n.shape), 3 * n)
    assert "is 3 times the numeric gradient everywhere" in only(a, n, kinks=kinks)
    n = np.where(rng.random(n.shape) < 0.5, 0.0, n)
    a = with_part(zero, 5, slice(None))(n)
    assert "is 0 in the last row (i1 = 5)" in only(a, n)
    # An error of the numeric gradient as large as half of it leaves few elements to speak, and they do.
    noisy = n + rng.normal(size=n.shape) * 0.1
    assert "times the numeric gradient everywhere" in only(3 * n, noisy, uncertainty=0.4)


def test_an_uncertain_gradient_explains_nothing() -> None:
    n = random()
    # Within an uncertainty of that size any of the orders would do.
    line = only(n + 10 * random(seed=5), n, uncertainty=3.0)
    assert "no simple pattern" in line, line


def test_nothing_breaks_on_extreme_values() -> None:
    values = [0.0, 1.0, -1e38, 1e-45, 3e38, np.nan, np.inf, -np.inf]
    shapes = [(1, 1, 1, 1), (1, 1, 2, 3), (0, 1, 2, 3), (1, 1, 1, 16), (7,)]
    rng = np.random.default_rng(6)
    for shape, _ in itertools.product(shapes, range(40)):
        a, n = (rng.choice(values, shape) for _ in range(2))
        tensors = [Tensor("the cotangent", rng.choice(values, shape)), Tensor("the output", rng.choice(values, (2, 3)))]
        for uncertainty in (0.0, 1e-3, np.inf, np.nan):
            lines = diagnose([compared(a, n, uncertainty=uncertainty), compared(n, a, "b")], tensors)
            assert all("\n" not in line for line in lines)


def test_a_large_param_is_looked_at_in_part() -> None:
    n = random((1, 1, 1300, 1000))
    a = rounded(n)
    a[..., 1299, :] = 0
    line = only(a, n)
    assert "is 0 in the last row (i1 = 1299): 1000 of 1048576 elements, a sample of 1300000" in line
