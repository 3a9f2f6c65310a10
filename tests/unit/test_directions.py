"""Random directions: a right gradient passes along all of them, a wrong one along none."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics.differences import typical_step
from gradcheck.numerics.directions import directional
from gradcheck.numerics.gradient_metrics import compare
from gradcheck.numerics.projection import Output
from tests.unit.test_numerics import evaluator

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, 300).astype(np.float32)
V = RNG.uniform(0.5, 1.5, (2, 300)) * RNG.choice([-1, 1], (2, 300))
RIGHT = np.cos(X.astype(np.float64)) * V


def excess(gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    output = Output.of(np.sin(X).astype(np.float64), V)
    claimed, derivative = directional(
        evaluator(np.sin, X), X, gradient, output, step=typical_step(X, None), rng=RNG, count=16
    )
    assert derivative.evaluations == 64
    return np.stack([compare(claimed[k], derivative.of(k)).excess for k in range(2)])


def test_the_right_gradient() -> None:
    assert excess(RIGHT).max() == 0


@pytest.mark.parametrize("wrong", [1.01 * RIGHT, -RIGHT, 0 * RIGHT, np.roll(RIGHT, 1, axis=1), RIGHT[:, ::-1]])
def test_wrong_gradients(wrong: NDArray[np.float64]) -> None:
    assert (excess(wrong).max(axis=1) > 5e-3).all()


def test_one_wrong_cotangent_is_seen_beside_a_right_one() -> None:
    worst = excess(np.stack([RIGHT[0], 2 * RIGHT[1]])).max(axis=1)
    assert worst[0] == 0
    assert worst[1] > 0.1
