"""A claimed gradient against forward evaluations in random dense directions.

Everything moves at once, each element by its own random amount u: <v, y(x+u) - y(x-u)> must be what the claimed
gradient n says, 2 <n, u>, up to the third order. One direction takes four evaluations whatever the size, and sees
any error that is not small beside the whole gradient; it does not say where the error is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.numerics.differences import DECIDED, Derivative
from gradcheck.numerics.projection import Output, Projection
from gradcheck.numerics.structure import Evaluate, Indices, Moves

Array = NDArray[np.float64]

#: The amounts by which elements move, in units of the step.
_AMOUNTS = np.array([-1.0, -0.5, 0.5, 1.0])
#: By how much less they move where that does not decide.
_SCALES = (1.0, 2.0**-2, 2.0**-4, 2.0**-6)


@dataclass(frozen=True)
class Direction:
    """One direction: everything is divided by the length of the narrow move, so that it compares with a gradient.

    claimed: (cotangents,) the derivative that the claimed gradient says
    numeric: (cotangents,) what the evaluations say, by Richardson's extrapolation
    gap, rounding: (cotangents,) as in `Derivative`
    narrow: (elements,) the narrow move from x-u/2 to x+u/2
    length: the length of `narrow`
    evaluations: forward evaluations spent
    """

    claimed: Array
    numeric: Array
    gap: Array
    rounding: Array
    narrow: Array
    length: float
    evaluations: int


def look(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: Indices | None,
    claimed: Array,
    projection: Projection,
    *,
    step: float,
    rng: Generator,
    adapt: bool = True,
) -> Direction:
    """Move elements (None: all) of the flat param x by amounts in [step/2, step]; claimed is (cotangents, elements).

    projection: of the output as a whole, without owners
    adapt: whether smaller amounts are tried where these do not decide: of many elements that share an output each must
        move less than one by itself; the amounts with the least uncertainty stay
    """
    count = x.size if elements is None else elements.size
    amount = (step * _AMOUNTS)[rng.integers(0, _AMOUNTS.size, count, dtype=np.uint8)]
    size = np.sqrt(np.mean(claimed**2, axis=1)) if count else np.zeros(len(claimed))
    best, least, spent = None, np.inf, 0
    for scale in _SCALES if adapt else _SCALES[:1]:
        seen = _look(evaluate, x, elements, claimed, projection, scale * amount)
        spent += seen.evaluations
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = float(np.max((seen.gap / 3.0 + seen.rounding) / np.maximum(np.abs(seen.numeric), size)))
        if best is None or relative < least:
            best, least = seen, relative
        if least <= DECIDED:
            break
    assert best is not None
    return replace(best, evaluations=spent)


def _look(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    elements: Indices | None,
    claimed: Array,
    projection: Projection,
    amount: Array,
) -> Direction:
    base = (x if elements is None else x[elements]).astype(np.float64)
    moved = np.stack([base + f * amount for f in (1.0, -1.0, 0.5, -0.5)]).astype(np.float32)
    stored = moved.astype(np.float64)
    y = evaluate(None if elements is None else np.tile(elements, (4, 1)), moved)
    changed = projection.changed(y)
    change = projection.changes(y, changed)[:, :, 0]
    variance = projection.rounding(changed[:1] | changed[1:2])[0, :, 0]
    wide, narrow = (stored[plus] - stored[minus] for plus, minus in ((0, 1), (2, 3)))
    error_wide = change[0] - change[1] - claimed @ wide
    error_narrow = change[2] - change[3] - claimed @ narrow
    length = float(np.linalg.norm(narrow)) or 1.0
    said = claimed @ narrow / length
    # The error of a central difference falls with the third power of the step, so Richardson takes 8 narrow ones.
    error = (8.0 * error_narrow - error_wide) / 6.0
    gap = np.abs(error_narrow - error_wide / 2.0)
    rounding = 4.0 / 3.0 * np.sqrt(2.0 * variance)
    return Direction(said, said + error / length, gap / length, rounding / length, narrow, length, 4)


def confirm(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    moves: Moves,
    derivative: Derivative,
    output: Output,
    *,
    step: float,
    rng: Generator,
    adapt: bool = True,
) -> tuple[bool, int]:
    """Whether moving everything at once changes <v, y> as the numeric gradient says, for every cotangent.

    It must, up to the uncertainties, where n is the whole gradient; it does not where elements that were moved
    together share an output after all. Takes four evaluations.
    """
    elements = moves.elements.ravel() if moves.named else None
    whole = Projection(output, None, 1)
    seen = look(evaluate, x, elements, derivative.value, whole, step=step, rng=rng, adapt=adapt)
    own = np.linalg.norm(derivative.uncertainty * seen.narrow, axis=1) / seen.length
    size = np.linalg.norm(derivative.value * seen.narrow, axis=1) / seen.length
    allowed = 4.0 * (own + 3.0 * seen.rounding) + DECIDED * size
    return bool((np.abs(seen.numeric - seen.claimed) <= allowed).all()), seen.evaluations


def directional(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    gradient: Array,
    output: Output,
    *,
    step: float,
    rng: Generator,
    count: int,
    adapt: bool = True,
) -> tuple[Array, Derivative]:
    """The claimed derivatives in `count` directions, (cotangents, count), and the numeric ones.

    gradient: (cotangents, elements), the claimed gradient of the whole param
    """
    whole = Projection(output, None, 1)
    seen = [look(evaluate, x, None, gradient, whole, step=step, rng=rng, adapt=adapt) for _ in range(count)]
    columns = [np.stack([getattr(one, name) for one in seen], axis=1) for name in ("numeric", "gap", "rounding")]
    value, gap, rounding = columns
    claimed = np.stack([one.claimed for one in seen], axis=1)
    return claimed, Derivative(value, gap, np.zeros_like(gap), rounding, sum(one.evaluations for one in seen))
