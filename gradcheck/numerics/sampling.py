"""Input values from a seed: they depend on the run's seed, the case id and the input's name alone."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.numerics.corners import rearranged

Array = NDArray[np.float64]

#: Of a larger tensor whose elements are independent so many are drawn, and repeated along it: drawing and quantising
#: would take longer than the op. Whole blocks of every quantised type, and a prime number of the largest ones, so that
#: no two rows near one another are alike.
DRAWN_ELEMENTS = 1021 * 256
_INDEPENDENT = ("uniform", "normal", "positive", "integers")


def generator(seed: int, *purpose: str) -> Generator:
    """The random generator for one purpose, independent of every other purpose and of the order of use."""
    digest = hashlib.sha256("\0".join([str(seed), *purpose]).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def sample_inputs(case: Case, seed: int) -> dict[str, Array]:
    """Values for every input of a case, in NumPy's order (ne reversed), before conversion to the type.

    A flat array of DRAWN_ELEMENTS stands for a larger tensor along which it is repeated.
    """
    return {spec.name: sample(spec, generator(seed, case.id, "input", spec.name)) for spec in case.inputs}


def sample(spec: Input, rng: Generator) -> Array:
    """Values for one input, of shape `spec.ne` reversed, or DRAWN_ELEMENTS of them to be repeated."""
    shape = tuple(reversed(spec.ne))
    draw, arguments = _KINDS[spec.init.kind], dict(spec.init.args)
    if spec.init.kind in _INDEPENDENT and math.prod(shape) > DRAWN_ELEMENTS:
        return rearranged(spec.init.data, draw(rng, (DRAWN_ELEMENTS,), **arguments), arguments, rng)
    values = rearranged(spec.init.data, draw(rng, shape, **arguments), arguments, rng)
    return np.ascontiguousarray(values, dtype=np.float64)


def sample_cotangent(kind: str, shape: tuple[int, ...], rng: Generator) -> Array:
    """The gradient that is fed into the output.

    "ones" gives the sum loss of the C++ tool. "random" has magnitudes in [0.5, 1.5] and random signs, so that
    no element's share is small and none cancels by symmetry; the values are exact in float32.
    """
    if kind == "ones":
        return np.ones(shape)
    magnitudes = rng.uniform(0.5, 1.5, shape).astype(np.float32).astype(np.float64)
    signed: Array = magnitudes * rng.choice([-1.0, 1.0], shape)
    return signed


def _uniform(
    rng: Generator, shape: tuple[int, ...], low: float, high: float, grid: float | None, gap: float | None
) -> Array:
    values = rng.uniform(low, high, shape)
    if gap:
        values = np.where(np.abs(values) < gap, np.where(values < 0, values - gap, values + gap), values)
    return np.round(values / grid) * grid if grid else values


def _normal(rng: Generator, shape: tuple[int, ...], mean: float, std: float) -> Array:
    return rng.normal(mean, std, shape)


def _positive(rng: Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    return rng.uniform(low, high, shape)


def _distinct(rng: Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    count = math.prod(shape)
    return rng.permutation(np.linspace(low, high, count)).reshape(shape)


def _integers(rng: Generator, shape: tuple[int, ...], low: int, high: int) -> Array:
    return rng.integers(low, high, shape).astype(np.float64)


def _permutation(rng: Generator, shape: tuple[int, ...], high: int | None) -> Array:
    size = high if high is not None else shape[-1]
    rows = [rng.permutation(size)[: shape[-1]] for _ in range(math.prod(shape[:-1]))]
    return np.array(rows, dtype=np.float64).reshape(shape)


def _arange(_rng: Generator, shape: tuple[int, ...], start: float, step: float) -> Array:
    return (start + step * np.arange(math.prod(shape), dtype=np.float64)).reshape(shape)


def _causal(_rng: Generator, shape: tuple[int, ...], past: int) -> Array:
    queries, keys = shape[-2:]
    blocked = np.arange(keys)[None, :] > np.arange(queries)[:, None] + past
    return np.broadcast_to(np.where(blocked, -np.inf, 0.0), shape).copy()


def _block_mask(rng: Generator, shape: tuple[int, ...], block: int, share: float) -> Array:
    values = rng.uniform(-1.0, 1.0, shape)
    queries, keys = shape[-2:]
    tiles = rng.uniform(size=(*shape[:-2], -(-queries // block), -(-keys // block))) < share
    tiles[..., 0] = False  # no row may be masked as a whole: its softmax would be 0/0
    blocked = np.repeat(np.repeat(tiles, block, axis=-2), block, axis=-1)[..., :queries, :keys]
    values[blocked] = -np.inf
    return values


def _lower_triangular(rng: Generator, shape: tuple[int, ...], diagonal: float) -> Array:
    values = np.tril(rng.uniform(-1.0, 1.0, shape), -1)
    size = min(shape[-2:])
    index = np.arange(size)
    magnitudes = diagonal * rng.uniform(1.0, 2.0, (*shape[:-2], size))
    values[..., index, index] = magnitudes * rng.choice([-1.0, 1.0], magnitudes.shape)
    return values


def _probabilities(rng: Generator, shape: tuple[int, ...]) -> Array:
    values = rng.uniform(0.1, 1.0, shape)
    total: Array = values / values.sum(axis=-1, keepdims=True)
    return total


def _one_hot(rng: Generator, shape: tuple[int, ...]) -> Array:
    values = np.zeros(shape)
    chosen = rng.integers(0, shape[-1], (*shape[:-1], 1))
    np.put_along_axis(values, chosen, 1.0, axis=-1)
    return values


def _hadamard(_rng: Generator, shape: tuple[int, ...]) -> Array:
    columns = shape[-1]
    rows = np.arange(math.prod(shape[:-1]), dtype=np.int64)
    common = rows[:, None] & np.arange(columns, dtype=np.int64)[None, :]
    ones = np.array([int(value).bit_count() for value in common.ravel()])
    return np.where(ones % 2, -1.0, 1.0).reshape(shape) / math.sqrt(columns)


def _constant(_rng: Generator, shape: tuple[int, ...], value: float) -> Array:
    return np.full(shape, float(value))


def _values(_rng: Generator, shape: tuple[int, ...], **args: Any) -> Array:
    return np.resize(np.array(args["list"], dtype=np.float64), shape)


#: One entry for each of `gradcheck.model.init.INIT_KINDS`.
_KINDS: dict[str, Callable[..., Array]] = {
    "uniform": _uniform,
    "normal": _normal,
    "positive": _positive,
    "distinct": _distinct,
    "integers": _integers,
    "permutation": _permutation,
    "arange": _arange,
    "causal": _causal,
    "block_mask": _block_mask,
    "lower_triangular": _lower_triangular,
    "probabilities": _probabilities,
    "one_hot": _one_hot,
    "hadamard": _hadamard,
    "constant": _constant,
    "values": _values,
}
