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
#: Samples of the second difference: few where many outputs are pooled, more where there are few.
_SAMPLES, _MORE_SAMPLES, _FEW = 4, 8, 64


def with_measured_noise(
    evaluate: Evaluate, x: NDArray[np.float32], output: Output, per_call: int, rng: Generator
) -> tuple[Output, int]:
    """The output with samples of its noise, as moves of this param show it, and the evaluations spent.

    x: the flat param; per_call: rows for each call of `evaluate`
    """
    samples = _SAMPLES if output.base.size >= _FEW else _MORE_SAMPLES
    size = float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) or 1.0
    scale = _MOVE * np.maximum(np.abs(x), size)
    noise: list[NDArray[np.float64]] = []
    pairs = max(1, per_call // 2)
    for start in range(0, samples, pairs):
        count = min(pairs, samples - start)
        move = scale * rng.uniform(0.5, 1.0, (count, x.size)) * rng.choice([-1.0, 1.0], (count, x.size))
        moved = np.concatenate([x + move, x - move]).astype(np.float32)
        y = evaluate(None, moved)
        with np.errstate(invalid="ignore"):
            second = (y[:count] - output.base) + (y[count:] - output.base)
        noise.append(np.where(np.isfinite(second), second, 0.0) / np.sqrt(6.0))
    return replace(output, noise=np.concatenate(noise)), 2 * samples
