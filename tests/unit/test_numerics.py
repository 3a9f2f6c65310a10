"""Differences on functions whose derivatives are known, and the metrics made of them."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics.differences import Derivative, differentiate, typical_step
from gradcheck.numerics.elements import pick_elements, unravel_ne
from gradcheck.numerics.forward_metrics import Difference, difference
from gradcheck.numerics.gradient_metrics import asymmetry, compare, cosine, mean_asymmetry, relative_l2
from gradcheck.numerics.projection import Output
from gradcheck.numerics.sampling import generator, sample_cotangent
from gradcheck.numerics.structure import Evaluate, dense

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
RNG = np.random.default_rng(1)


def numeric(f: Callable[[F32], F32], x: F32, v: NDArray[np.float64], per_call: int = 7) -> Derivative:
    """J^T v of a float32 function of a vector."""

    output = Output.of(f(x).astype(np.float64), v)
    moves = dense(x.shape, x.size, RNG)
    return differentiate(evaluator(f, x), x, moves, output, step=typical_step(x, None), per_call=per_call).of(0)


def evaluator(f: Callable[[F32], F32], x: F32) -> Evaluate:
    """What a batch of a device does, for a function of a vector."""

    def evaluate(elements: NDArray[np.int64] | None, to: F32) -> F32:
        rows = np.tile(x, (len(to), 1))
        rows[np.arange(len(to))[:, None], np.arange(x.size) if elements is None else elements] = to
        return np.stack([f(row).ravel() for row in rows]).astype(np.float32)

    return evaluate


X = RNG.uniform(-1, 1, 60).astype(np.float32)
V = RNG.uniform(0.5, 1.5, 60) * RNG.choice([-1, 1], 60)


def softmax(x: F32) -> F32:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum(), dtype=np.float32)


def softmax_gradient(x: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    s = np.exp(x - x.max())
    s /= s.sum()
    return np.asarray(s * (v - v @ s))


@pytest.mark.parametrize(
    ("f", "gradient"),
    [
        (np.exp, lambda x, v: np.exp(x) * v),
        (np.sin, lambda x, v: np.cos(x) * v),
        (lambda x: x * x * x, lambda x, v: 3 * x * x * v),
        (softmax, softmax_gradient),
        (lambda x: np.cumsum(x, dtype=np.float32), lambda _, v: np.cumsum(v[::-1])[::-1]),
        (lambda x: np.float32(3) * x[::-1], lambda _, v: 3 * v[::-1]),
    ],
)
def test_the_true_derivative_lies_within_the_uncertainty(
    f: Callable[[F32], F32], gradient: Callable[[F64, F64], F64]
) -> None:
    found = numeric(f, X, V)
    true = gradient(X.astype(np.float64), V)
    inside = np.abs(found.value - true) <= found.uncertainty
    assert inside.mean() >= 0.95
    assert np.linalg.norm(found.value - true) <= 1e-4 * np.linalg.norm(true)
    assert found.evaluations >= 4 * X.size


def test_a_step_across_a_kink_is_retried_with_a_smaller_one() -> None:
    x = np.array([0.01, -0.01, 0.5, 0.0], dtype=np.float32)
    found = numeric(lambda row: np.maximum(row, 0), x, np.ones(4))
    judged = compare(np.array([1.0, 0.0, 1.0, 0.0]), found)
    assert found.value[:3] == pytest.approx([1, 0, 1], abs=1e-3)
    assert judged.kink.tolist() == [False, False, False, True]


def test_a_step_that_leaves_the_domain_is_retried_with_a_smaller_one() -> None:
    x = np.array([0.004, 0.5, 1.0, 0.8], dtype=np.float32)
    with np.errstate(invalid="ignore"):
        found = numeric(np.sqrt, x, np.ones(4))
    assert found.value == pytest.approx(0.5 / np.sqrt(x), rel=2e-3)


def test_a_jump_is_a_kink() -> None:
    x = np.array([0.49999, 0.3, 0.1], dtype=np.float32)
    found = numeric(np.round, x, np.ones(3))
    judged = compare(np.zeros(3), found)
    assert judged.kink.tolist() == [True, False, False]


def test_equal_infinities_cancel() -> None:
    def masked(row: F32) -> F32:
        y = row.copy()
        y[0] = -np.inf
        return y

    found = numeric(masked, X[:5], np.ones(5))
    assert found.value == pytest.approx([0, 1, 1, 1, 1], abs=1e-5)


def test_a_step_that_does_not_change_x_is_an_error() -> None:
    x = np.array([1e6], dtype=np.float32)
    with pytest.raises(ValueError, match="does not change the stored x"):
        differentiate(
            lambda _, to: to,
            x,
            dense((1,), 1, RNG),
            Output.of(np.ones(1), np.ones(1)),
            step=1e-4,
            per_call=1,
            adapt=False,
        )


def test_a_change_below_the_last_place_has_the_rounding_of_one() -> None:
    """A retry with a smaller step moves nothing of a large output: that is no certain zero."""
    x = np.array([0.5], dtype=np.float32)

    def f(row: F32) -> F32:
        return np.asarray(np.float32(1000.0) + np.float32(1e-2) * row * row, dtype=np.float32)

    found = numeric(f, x, np.ones(1))
    assert abs(found.value[0] - 1e-2) <= found.uncertainty[0]
    assert found.uncertainty[0] > 0


def test_equal_outputs_on_both_sides_are_rounded_too() -> None:
    """Beside a thousand, squares of x + h and x - h round to the same number: the slope is not known to be zero."""
    x = np.array([1e-4, 0.7, -0.4], dtype=np.float32)

    def f(row: F32) -> F32:
        return np.array([np.float32(1000.0) + np.sum(row * row)], dtype=np.float32)

    found = numeric(f, x, np.ones(1))
    assert (np.abs(found.value - 2 * x) <= found.uncertainty).all()


def test_a_denormal_beside_a_zero_has_no_relative_error() -> None:
    n = Derivative(np.array([1.0, -2.0, 0.0]), np.zeros(3), np.zeros(3), np.zeros(3), 0)
    judged = compare(np.array([1.0, -2.0, 1e-40]), n)
    assert mean_asymmetry([judged]) == (0.0, 0.0)
    assert judged.excess.max() <= 1e-30


def exact(values: list[float]) -> Derivative:
    n = np.array(values)
    zero = np.zeros(n.size)
    return Derivative(n, zero, zero, zero + 1e-9, 0)


def test_metrics_of_a_factor() -> None:
    n = exact([1.0, -2.0, 3.0])
    judged = compare(3 * n.value, n)
    assert mean_asymmetry([judged])[0] == pytest.approx(0.5)
    assert relative_l2(judged) == pytest.approx(2.0)
    assert cosine(judged) == pytest.approx(1.0)
    assert judged.excess.max() == pytest.approx(2 / 3, rel=1e-2)


def test_a_nan_is_never_lost() -> None:
    n = exact([1.0, 2.0])
    judged = compare(np.array([np.nan, 2.0]), n)
    assert np.isnan(mean_asymmetry([judged])[0])
    assert np.isnan(relative_l2(judged))
    assert judged.not_finite.tolist() == [True, False]


def test_asymmetry_of_zeros_is_zero() -> None:
    assert asymmetry(np.array([0.0, 1.0]), np.array([0.0, 0.0])).tolist() == [0.0, 1.0]


def test_differences_are_none_between_equals() -> None:
    want = np.array([1.0, np.inf, -2.0])
    assert difference(want.copy(), want, 3) == Difference(0.0, 0.0, (), 0, 0)


def test_the_mean_square_is_normalised_and_infinities_that_agree_are_left_out() -> None:
    found = difference(np.array([2.0, np.inf]), np.array([1.0, np.inf]), 3)
    assert (found.nmse, found.one_sided, found.nan) == (1.0, 0, 0)
    assert found.worst == 0.5
    assert found.places == (0,)


def test_what_is_not_finite_on_one_side_is_counted() -> None:
    want = np.array([1.0, np.inf, np.nan, np.inf, 4.0])
    found = difference(np.array([1.0, -np.inf, np.nan, 0.0, np.nan]), want, 2)
    assert (found.one_sided, found.nan) == (3, 1)
    assert np.isnan(found.nmse)
    assert found.worst == np.inf
    assert found.places == (1, 3)


def test_a_reference_of_zeros() -> None:
    found = difference(np.array([0.0, 1e-9]), np.zeros(2), 3)
    assert (found.nmse, found.worst, found.places) == (np.inf, np.inf, (1,))


def test_a_difference_found_in_chunks_is_that_of_the_whole() -> None:
    rng = np.random.default_rng(3)
    want = rng.normal(size=200_001)
    got = want + 1e-3 * rng.normal(size=want.size)
    found = difference(got.reshape(3, -1), want.reshape(3, -1), 4)
    assert found.nmse == pytest.approx(np.sum((got - want) ** 2) / np.sum(want**2), rel=1e-12)
    errors = np.abs(got - want) / (np.abs(want) + np.sqrt(np.mean(want**2)))
    assert found.places == tuple(np.argsort(-errors)[:4])
    assert found.worst == pytest.approx(errors.max(), rel=1e-12)


def test_elements_have_ends_and_corners() -> None:
    shape = (3, 5, 70, 90)
    picked = pick_elements(shape, 100, generator(0, "x"))
    assert picked.size == 100
    assert (np.diff(picked) > 0).all()
    assert {0, 3 * 5 * 70 * 90 - 1, 89, 69 * 90} <= set(picked.tolist())
    assert pick_elements(shape, 100, generator(0, "x")).tolist() == picked.tolist()
    assert pick_elements((2, 3), 100, generator(0, "x")).tolist() == list(range(6))
    assert pick_elements(shape, 1, generator(0, "x")).tolist() == [0]
    assert unravel_ne(1, (2, 3)) == (1, 0)


def test_a_generator_depends_on_its_purpose_alone() -> None:
    a, b, c = (generator(seed, name).random(3).tolist() for seed, name in ((0, "x"), (0, "y"), (0, "x")))
    assert a == c
    assert a != b


def test_cotangents_are_bounded_away_from_zero() -> None:
    v = sample_cotangent("random", (1000,), generator(0, "v"))
    assert ((np.abs(v) >= 0.5) & (np.abs(v) <= 1.5)).all()
    assert (v > 0).any()
    assert (v < 0).any()
    assert sample_cotangent("ones", (2,), generator(0, "v")).tolist() == [1, 1]
