"""How much a kernel's rounding moves each output: measured, since no model of a kernel could tell.

With every element of the param moved by a tiny random amount d, the second difference

    y(x+d) - 2 y(x) + y(x-d)

has lost the linear part, and the curvature is of the order of d^2: what is left is the rounding of three evaluations,
of variance 6 s^2 for an error s of one. (The idea of measuring noise by differences is that of Hamming's table; More
and Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33, 2011, develop it.)
"""

from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.numerics.projection import Output
from gradcheck.numerics.structure import Evaluate

#: The tiny move in units of the element, or of the size of the param for small ones: hundreds of units in the last
#: place of float32, so that roundings differ, and small enough for d^2 to vanish beside one.
_MOVE = 2.0**-16
#: The error of 999 normal deviates in 1,000 is below so many of its standard deviations.
_SIGMAS = 3.5
#: Samples of the second difference: few where many outputs are pooled, more where there are few.
_SAMPLES, _MORE_SAMPLES, _FEW = 2, 8, 64


def with_measured_noise(
    evaluate: Evaluate, x: NDArray[np.float32], output: Output, per_call: int, rng: Generator
) -> tuple[Output, int]:
    """The output with weights that are at least the noise that is seen, and the evaluations spent.

    x: the flat param; per_call: rows for each call of `evaluate`
    """
    samples = _SAMPLES if output.base.size >= _FEW else _MORE_SAMPLES
    size = float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) or 1.0
    scale = _MOVE * np.maximum(np.abs(x), size)
    total = np.zeros(output.base.shape)
    pairs = max(1, per_call // 2)
    for start in range(0, samples, pairs):
        count = min(pairs, samples - start)
        move = scale * rng.uniform(0.5, 1.0, (count, x.size)) * rng.choice([-1.0, 1.0], (count, x.size))
        moved = np.concatenate([x + move, x - move]).astype(np.float32)
        y = evaluate(None, moved)
        with np.errstate(invalid="ignore"):
            second = (y[:count] - output.base) + (y[count:] - output.base)
        total += np.sum(np.where(np.isfinite(second), second, 0.0) ** 2, axis=0)
    variance = total / (6.0 * samples)
    # Of one output there are few samples: what all show together, in units of what is expected, counts for each.
    expected = np.mean(output.weights / output.cotangents**2, axis=0)
    excess = np.divide(variance, expected, out=np.zeros_like(variance), where=expected > 0)
    pooled = float(np.mean(np.minimum(excess, 4.0 * np.quantile(excess, 0.9)))) if excess.size else 0.0
    factor = np.maximum(1.0, _SIGMAS**2 * np.maximum(pooled, excess if samples > _SAMPLES else 0.0))
    return replace(output, weights=output.weights * factor), 2 * samples
