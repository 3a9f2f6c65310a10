"""The uncertainty of a numeric gradient, on functions whose derivatives are known: it must hold what it promises."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics.differences import Derivative, differentiate, typical_step
from gradcheck.numerics.noise import with_measured_noise
from gradcheck.numerics.projection import Output, Projection
from gradcheck.numerics.structure import Moves, dense
from tests.unit.test_numerics import evaluator

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
ONE = np.float32(1)
#: The share of elements whose true error may lie outside of the uncertainty.
OUTSIDE = 1e-3
#: An uncertainty that is always kept because it is enormous would be worth nothing: its median, in units of the RMS.
USEFUL = 5e-3


def sigmoid(x: F64) -> F64:
    return np.asarray(1 / (1 + np.exp(-x)))


#: name -> function in float32, its derivative in float64, and the range of x.
ELEMENTWISE: dict[str, tuple[Callable[[F32], F32], Callable[[F64], F64], float, float]] = {
    "identity": (lambda x: x, np.ones_like, -1, 1),
    "exp": (np.exp, np.exp, -1, 1),
    "exp of a wide range": (np.exp, np.exp, -10, 10),
    "sin": (np.sin, np.cos, -7.5, 7.5),
    "a fast sin": (lambda x: np.sin(np.float32(20) * x), lambda x: 20 * np.cos(20 * x), -1, 1),
    "cube": (lambda x: x * x * x, lambda x: 3 * x * x, -1, 1),
    "square": (lambda x: x * x, lambda x: 2 * x, -10, 10),
    "square beside a thousand": (lambda x: np.float32(1000) + x * x, lambda x: 2 * x, -1, 1),
    "log": (np.log, lambda x: 1 / x, 0.5, 1.5),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), 0.5, 1.5),
    "reciprocal": (lambda x: ONE / x, lambda x: -1 / x**2, 0.5, 2),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, -3, 3),
    "silu": (lambda x: np.asarray(x / (ONE + np.exp(-x))), lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), -3, 3),
    "a factor, large values": (lambda x: np.float32(3.7) * x, lambda x: np.full_like(x, 3.7), -150, 150),
}


def gradients(f: Callable[[F32], F32], x: F32, v: F64, moves: Moves, rng: np.random.Generator) -> Derivative:
    evaluate = evaluator(f, x)
    output, _ = with_measured_noise(evaluate, x, Output.of(f(x).astype(np.float64), v), 32, rng)
    return differentiate(evaluate, x, moves, output, step=typical_step(x, None), per_call=8).of(0)


def cotangent(size: int, rng: np.random.Generator) -> F64:
    return np.asarray(rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    f, slope, low, high = ELEMENTWISE[name]
    rng = np.random.default_rng(2)
    x = rng.uniform(low, high, 40_000).astype(np.float32)
    v = cotangent(x.size, rng)
    moves = Moves(np.arange(x.size)[None, :], np.arange(x.size))
    found = gradients(f, x, v, moves, rng)
    true = slope(x.astype(np.float64)) * v
    assert np.mean(np.abs(found.value - true) > found.uncertainty) <= OUTSIDE
    assert np.median(found.uncertainty) <= USEFUL * np.sqrt(np.mean(true**2))


SIZE = 48
W = np.random.default_rng(3).uniform(-1, 1, (SIZE, SIZE)).astype(np.float32)


def softmax(x: F32) -> F32:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())


def softmax_gradient(x: F64, v: F64) -> F64:
    s = np.exp(x - x.max())
    s /= s.sum()
    return np.asarray(s * (v - v @ s))


def rms_norm(x: F32) -> F32:
    return np.asarray(x / np.sqrt(np.mean(x * x) + np.float32(1e-6)))


def rms_norm_gradient(x: F64, v: F64) -> F64:
    r = 1 / np.sqrt(np.mean(x * x) + 1e-6)
    return np.asarray(v * r - x * r**3 * (v @ x) / x.size)


#: name -> function of a vector in float32 and J^T v in float64.
DENSE: dict[str, tuple[Callable[[F32], F32], Callable[[F64, F64], F64]]] = {
    "soft_max": (softmax, softmax_gradient),
    "rms_norm": (rms_norm, rms_norm_gradient),
    "mul_mat": (lambda x: W @ x, lambda _, v: W.T.astype(np.float64) @ v),
    "cumsum": (lambda x: np.cumsum(x, dtype=np.float32), lambda _, v: np.cumsum(v[::-1])[::-1]),
    "sum": (lambda x: np.array([x.sum()]), lambda x, v: np.full(x.size, v[0])),
    "sum of squares": (lambda x: np.array([np.sum(x * x)]), lambda x, v: 2 * x * v[0]),
    "norm": (lambda x: np.array([np.sqrt(np.sum(x * x))]), lambda x, v: x / np.sqrt(x @ x) * v[0]),
    "log of a sum of exp": (
        lambda x: np.array([np.log(np.sum(np.exp(x)))]),
        lambda x, v: np.exp(x) / np.exp(x).sum() * v[0],
    ),
}


@pytest.mark.parametrize("name", DENSE)
def test_elements_that_share_outputs(name: str) -> None:
    f, gradient = DENSE[name]
    rng = np.random.default_rng(4)
    outside, relative = [], []
    for _ in range(60):
        x = rng.uniform(-1, 1, SIZE).astype(np.float32)
        v = cotangent(f(x).size, rng)
        found = gradients(f, x, v, dense((SIZE,), SIZE, rng), rng)
        true = gradient(x.astype(np.float64), v)
        outside.append(np.abs(found.value - true) > found.uncertainty)
        relative.append(found.uncertainty / np.sqrt(np.mean(true**2)))
    assert np.mean(outside) <= OUTSIDE
    assert np.median(relative) <= USEFUL


def test_noise_that_is_not_the_outputs_own_is_seen() -> None:
    """A sum that cancels is rounded like its parts; so is a kernel that goes through float16."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 500).astype(np.float32)

    def rough(row: F32) -> F32:
        return np.asarray(row + rng.normal(0, 1e-4, row.size), dtype=np.float32)

    output = Output.of(rough(x).astype(np.float64), np.ones(x.size))
    measured, spent = with_measured_noise(evaluator(rough, x), x, output, 8, rng)
    everything = np.ones((1, x.size), dtype=np.bool_)
    deviation = np.sqrt(Projection(measured, np.arange(x.size), x.size).rounding(everything))
    assert np.sqrt(np.mean(deviation**2)) == pytest.approx(3.5e-4, rel=0.2)
    assert spent == 8


def test_errors_that_outputs_share_add_up() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.5, 1, 400).astype(np.float32)

    def scaled(row: F32) -> F32:
        return np.asarray(row * np.float32(1 + rng.normal(0, 1e-5)), dtype=np.float32)

    output = Output.of(x.astype(np.float64), np.ones(x.size))
    measured, _ = with_measured_noise(evaluator(scaled, x), x, output, 8, rng)
    everything = np.ones((1, x.size), dtype=np.bool_)
    together = float(np.sqrt(Projection(measured, None, 1).rounding(everything))[0, 0, 0])
    assert together >= 1e-5 * float(x.sum())


def test_without_noise_the_rounding_is_that_of_the_last_place() -> None:
    x = np.linspace(-1, 1, 100).astype(np.float32)
    output = Output.of(x.astype(np.float64), np.ones(x.size))
    measured, _ = with_measured_noise(evaluator(lambda row: row, x), x, output, 8, np.random.default_rng(6))
    changed = np.ones((1, x.size), dtype=np.bool_)
    seen, expected = (Projection(one, None, 1).rounding(changed) for one in (measured, output))
    assert seen <= 1.5 * expected
