"""Values that kernels and rules stumble over, made of ordinary ones and inside the range that an init declares."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Range = tuple[float, float]

#: Zeros of both signs, denormal numbers of float32 and its smallest normal ones.
SPECIAL = (0.0, -0.0, 1e-40, -1e-40, 2.0**-126, -(2.0**-126))
#: One element in so many is special, up to a number of them: at a kink no gradient can be judged.
_SPECIAL_SHARE = 32
_MOST_SPECIAL = 12
#: How much a spike is above the largest of the other values, where nothing bounds it.
_SPIKE = 8.0
#: Where a constant is in its range: at no place of symmetry, as 1/2 is for x - x^2.
_CONSTANT = 0.8125
#: Of a range that bounds it, the share in which the other values lie.
_BELOW_SPIKE = 0.25


def rearranged(data: str, values: Array, arguments: Mapping[str, Any], rng: Generator) -> Array:
    """Values of an init turned into those that `Init.data` asks for, of the same shape; "" leaves them alone.

    arguments: the init's; `low` and `high` bound what comes out, but the default of [-1, 1] is no bound for a spike
    """
    if not data:
        return values
    bounds = (float(arguments["low"]), float(arguments["high"])) if "low" in arguments else None
    if data == "negative" and arguments.get("gap"):
        bounds = None  # symmetric then: only the signs may change
    if data != "negative" and bounds == (-1.0, 1.0):
        bounds = None
    made = _MAKERS[data](values, bounds, rng)
    grid = arguments.get("grid")
    return np.round(made / grid) * grid if grid else made


def _special(values: Array, _bounds: Range | None, rng: Generator) -> Array:
    made = values.copy()
    count = min(_MOST_SPECIAL, values.size // _SPECIAL_SHARE)
    made.flat[rng.permutation(values.size)[:count]] = np.resize(SPECIAL, count)
    return made


def _infinite(*infinities: float) -> Callable[[Array, Range | None, Generator], Array]:
    """One element is each of these."""

    def make(values: Array, _bounds: Range | None, rng: Generator) -> Array:
        made = values.copy()
        made.flat[rng.permutation(values.size)[: len(infinities)]] = infinities
        return made

    return make


def _negative(values: Array, bounds: Range | None, _rng: Generator) -> Array:
    if bounds is None:
        return -np.abs(values)
    low, high = bounds
    if high <= 0.0:
        return values
    # Distinct values stay distinct.
    return low + (values - low) * (0.9375 * -low / (high - low))


def _spike(values: Array, bounds: Range | None, rng: Generator) -> Array:
    made = values.copy() if bounds is None else bounds[0] + (values - bounds[0]) * _BELOW_SPIKE
    made.flat[int(rng.integers(values.size))] = _SPIKE if bounds is None else bounds[1]
    return made


def _constant(values: Array, bounds: Range | None, _rng: Generator) -> Array:
    low, high = bounds or (-1.0, 1.0)
    return np.full(values.shape, low + _CONSTANT * (high - low))


def _sorted(values: Array, _bounds: Range | None, _rng: Generator) -> Array:
    return np.sort(values, axis=None).reshape(values.shape)


_MAKERS: dict[str, Callable[[Array, Range | None, Generator], Array]] = {
    "special": _special,
    "infinite": _infinite(np.inf, -np.inf),
    "negative_infinite": _infinite(-np.inf),
    "negative": _negative,
    "spike": _spike,
    "constant": _constant,
    "sorted": _sorted,
}
