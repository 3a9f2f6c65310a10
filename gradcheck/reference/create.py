"""Tensors made of numbers, or of a few."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new


def arange(start: float, stop: float, step: float) -> Tensor:
    """Count from `start` by `step` up to `stop`, without it: ceil((stop - start) / step) numbers, f32."""
    demand(stop > start and step > 0, f"arange: from {start} to {stop} by {step}")
    # In float32, as ggml has them: the shape depends on how the quotient is rounded.
    count = math.ceil(np.float32(np.float32(stop) - np.float32(start)) / np.float32(step))
    return new("f32", (count, 1, 1, 1), lambda: start + step * np.arange(count, dtype=np.float64)[None, None, None])


def timestep_embedding(timesteps: Tensor, dim: int, max_period: int) -> Tensor:
    """Sinusoids of each time step t (Vaswani et al. 2017, as in the latent diffusion models that ggml.h names).

    cos(t f[j]) for j < half, then sin(t f[j]), f[j] = max_period^(-j / half), half = dim // 2; 0 where dim is odd
    timesteps: [n], out: [dim, n], f32
    """
    demand(dim > 1, f"timestep_embedding: {dim} dimensions")
    half = dim // 2

    def rule(t: Array) -> Array:
        angle = t.ravel()[:, None] * float(max_period) ** (-np.arange(half) / half)
        waves = np.concatenate((np.cos(angle), np.sin(angle)), axis=1)
        return np.pad(waves, ((0, 0), (0, dim - 2 * half)))[None, None]

    return new("f32", (dim, timesteps.ne[0], 1, 1), rule, timesteps)


FUNCTIONS: dict[str, Callable[..., Any]] = {"arange": arange, "timestep_embedding": timestep_embedding}
