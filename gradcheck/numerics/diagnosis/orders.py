"""The hypothesis that backprop reads the cotangent in another order than its strides say.

A kernel that takes a strided gradient for a contiguous one is right in all but this. Where an output depends on one
element of the param each, backprop is then n_e v_w(e) / v_r(e), with the right place r and the wrong one w.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from gradcheck.numerics.diagnosis.compared import EXPLAINED, Array, Compared, Explanation, Indices, Question

_SCREENED = 256
#: Wrong elements that it takes to see that each has another element's cotangent.
_FEWEST = 8
#: The relative distance of equal values, and the largest chance at which unrelated ones may be taken for equal.
_SAME, _CHANCE = 1e-5, 0.1
_CAUSE = "strides are ignored, or axes are mixed up"


def by_order(question: Question) -> Iterator[Explanation]:
    """Every order in which the cotangent may belong to the param, with every other in which it may be read."""
    cotangent = next((tensor.values for tensor in question.tensors if tensor.words == "the cotangent"), None)
    param = question.param
    if cotangent is None or cotangent.size != np.prod(param.shape) or not _divisible(cotangent):
        return
    v = cotangent.ravel()
    orders = list(itertools.permutations(param.axes))
    rights = [order for order in orders if tuple(param.shape[axis] for axis in order) == cotangent.shape]
    few = param.subset(question.sample(_SCREENED))
    for right, wrong in itertools.product(rights, orders):
        if wrong != right and _fits(few, v, right, wrong):
            scale = _scale(param, v, right, wrong)
            how = "as if it was contiguous" if wrong == tuple(param.axes) else "in another order"
            yield Explanation(
                f"what it would be with the cotangent read {how}",
                param.numeric * scale,
                param.uncertainty * np.abs(scale),
                aside=_CAUSE,
            )
    values = np.sort(v)
    for right in rights:
        if _nearest(few, values, v, right) is not None:
            yield from _other_elements(question, values, v, right)


def _other_elements(question: Question, values: Array, v: Array, order: tuple[int, ...]) -> Iterator[Explanation]:
    """In no order with a name: backprop n_e w / v_r(e), where w is some value of the cotangent each time."""
    param = question.param
    used = np.flatnonzero(question.wrong & param.resolved)
    near = _nearest(param.subset(used), values, v, order)
    if near is None:
        return
    scale = np.full(param.elements.size, np.nan)
    scale[used] = near / v[_position(param, order)[used]]
    yield Explanation(
        "what it would be with other elements of the cotangent",
        param.numeric * scale,
        param.uncertainty * np.abs(scale),
        fitted=used.size // 2,
        aside=_CAUSE,
        applies=question.wrong,
    )


def _nearest(param: Compared, values: Array, v: Array, order: tuple[int, ...]) -> Array | None:
    """For each element the value of the cotangent that backprop has in it; None where some have none.

    values: those of the cotangent, in ascending order
    """
    used = param.resolved
    if np.count_nonzero(used) < _FEWEST or values[0] == values[-1]:
        return None
    ratio = np.divide(v[_position(param, order)], param.numeric, out=np.zeros_like(param.numeric), where=used)
    found = param.backprop * ratio
    allowed = np.abs(ratio) * (param.uncertainty + _SAME * np.abs(param.backprop))
    # Among many values one is near to anything.
    chance = 2.0 * values.size / (values[-1] - values[0]) * float(np.median(allowed[used]))
    if chance > _CHANCE:
        return None
    at = np.clip(np.searchsorted(values, found), 1, values.size - 1)
    near: Array = np.where(found - values[at - 1] < values[at] - found, values[at - 1], values[at])
    return near if np.mean(np.abs(found - near)[used] <= allowed[used]) >= EXPLAINED else None


def _divisible(values: Array) -> bool:
    return bool((np.isfinite(values) & (values != 0)).all())


def _fits(few: Compared, v: Array, right: tuple[int, ...], wrong: tuple[int, ...]) -> bool:
    scale = _scale(few, v, right, wrong)
    return bool(np.mean(few.agrees(few.numeric * scale, few.uncertainty * np.abs(scale))) >= 0.9)


def _scale(param: Compared, v: Array, right: tuple[int, ...], wrong: tuple[int, ...]) -> Array:
    scale: Array = v[_position(param, wrong)] / v[_position(param, right)]
    return scale


def _position(param: Compared, order: tuple[int, ...]) -> Indices:
    """Where each element is in memory when the axes of the param lie there in this order."""
    flat = np.zeros_like(param.elements)
    for axis in order:
        flat = flat * param.shape[axis] + param.index[axis]
    return flat
