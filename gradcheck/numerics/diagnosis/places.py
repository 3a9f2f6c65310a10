"""Hypotheses that backprop has the right values in other places: reversed, transposed, shifted, permuted, repeated."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from gradcheck.numerics.diagnosis.compared import Array, Compared, Explanation, Indices, Question

#: From a param to the flat element where the value of each of its elements comes from, -1 for nowhere.
_Source = Callable[[Compared], Indices]

#: Elements that are looked at before all are: enough to see a wrong hypothesis.
_SCREENED = 256
#: Elements whose values are looked for among all, and how many near values are taken for each.
_TRACED, _NEAR = 16, 32
#: The relative distance of values that are taken for the same.
_SAME = 1e-4
#: Wrong elements below which an order says nothing.
_FEWEST = 4
#: Sorted values must be nearer than this share of the distance that unrelated ones have by chance.
_NEARER = 0.1


def by_place(question: Question) -> Iterator[Explanation]:
    """Orders with a name first; then the bare fact that the values are elsewhere."""
    if np.count_nonzero(question.wrong) < _FEWEST:
        return
    yield from _reversed(question)
    yield from _transposed(question)
    yield from _shifted(question)
    yield from _repeated(question)
    yield from _elsewhere(question)


def _moved(question: Question, source: _Source, words: str, fitted: int = 0) -> Iterator[Explanation]:
    """The explanation, unless a sample already speaks against it."""
    param = question.param
    sample = param.subset(question.sample(_SCREENED))
    values, errors = param.at(source(sample))
    known = np.isfinite(values)
    # Few of a sampled param's elements have a source that was judged too.
    if known.any() and np.mean(sample.agrees(values, errors)[known]) < 0.9:
        return
    values, errors = param.at(source(param))
    yield Explanation(words, values, errors, fitted)


def _long_axes(param: Compared) -> list[int]:
    return [axis for axis in reversed(param.axes) if param.shape[axis] > 1]


def _ravel(index: list[Indices], shape: tuple[int, ...]) -> Indices:
    flat = np.zeros_like(index[0])
    for position, size in zip(index, shape, strict=True):
        flat = flat * size + position
    return flat


def _reversed(question: Question) -> Iterator[Explanation]:
    axes = _long_axes(question.param)
    for count in range(1, len(axes) + 1):
        for chosen in itertools.combinations(axes, count):
            names = " and ".join(question.param.along(axis) for axis in chosen)
            yield from _moved(question, _reversal(chosen), f"the numeric gradient reversed along {names}")


def _reversal(chosen: tuple[int, ...]) -> _Source:
    def source(param: Compared) -> Indices:
        index = [
            size - 1 - at if axis in chosen else at
            for axis, (at, size) in enumerate(zip(param.index, param.shape, strict=True))
        ]
        return _ravel(index, param.shape)

    return source


def _transposed(question: Question) -> Iterator[Explanation]:
    """In the order of a permuted tensor, of whatever shape that is."""
    param = question.param
    long = _long_axes(param)
    for order in itertools.permutations(long):
        if list(order) == long:
            continue
        to = dict(zip(long, order, strict=True))
        permutation = tuple(to.get(axis, axis) for axis in param.axes)
        moved = [axis for axis in long if to[axis] != axis]
        names = [param.along(axis) for axis in moved]
        if len(moved) == 2:
            same = param.shape[moved[0]] == param.shape[moved[1]]
            how = f"transposed: {names[0]} and {names[1]} swapped" + ("" if same else " in memory")
        else:
            how = f"permuted: in the places of {', '.join(names)} are " + ", ".join(
                param.along(to[axis]) for axis in moved
            )
        yield from _moved(question, _permutation(permutation), f"the numeric gradient {how}")


def _permutation(permutation: tuple[int, ...]) -> _Source:
    def source(param: Compared) -> Indices:
        there = np.unravel_index(param.elements, tuple(param.shape[axis] for axis in permutation))
        index = [there[permutation.index(axis)].astype(np.int64) for axis in param.axes]
        return _ravel(index, param.shape)

    return source


def _shifted(question: Question) -> Iterator[Explanation]:
    """By the distances at which some values are found again, along an axis or in memory; the best of them."""
    found: list[tuple[int, Explanation]] = []
    param = question.param
    for distance in _distances(question):
        stride = 1
        for axis in reversed(param.axes):
            steps, rest = divmod(distance, stride)
            if rest == 0 and 0 < abs(steps) < param.shape[axis]:
                for cyclic in (False, True):
                    if not cyclic and 2 * abs(steps) > param.shape[axis]:
                        continue
                    name, sign = param.along(axis), "+" if steps > 0 else "-"
                    rule = f"at {name} it is numeric at {name} {sign} {abs(steps)}{', cyclic' if cyclic else ''}"
                    words = f"the numeric gradient shifted along {name} ({rule})"
                    moved = _moved(question, _shift(axis, steps, cyclic), words, 1)
                    found += [(question.support(one), one) for one in moved]
            stride *= param.shape[axis]
        words = f"the numeric gradient shifted by {abs(distance)} element{'' if abs(distance) == 1 else 's'} in memory"
        moved = _moved(question, _run(distance), words, 1)
        found += [(question.support(one), one) for one in moved]
    if found:
        yield max(found, key=lambda entry: entry[0])[1]


def _distances(question: Question) -> list[int]:
    """Distances from a wrong element to where its value stands in the numeric gradient: the commonest ones."""
    param = question.param
    votes: Counter[int] = Counter()
    for at in question.sample(_TRACED):
        value = param.backprop[at]
        distance = np.abs(param.numeric - value)
        near = np.flatnonzero(distance <= param.uncertainty + _SAME * abs(value))
        if near.size > _NEAR:
            near = near[np.argpartition(distance[near], _NEAR)[:_NEAR]]
        votes.update((param.elements[near] - param.elements[at]).tolist())
    votes.pop(0, None)
    return [distance for distance, count in votes.most_common(3) if count > 1]


def _shift(axis: int, steps: int, cyclic: bool) -> _Source:
    def source(param: Compared) -> Indices:
        index = list(param.index)
        index[axis] = index[axis] + steps
        outside = (index[axis] < 0) | (index[axis] >= param.shape[axis])
        index[axis] = index[axis] % param.shape[axis]
        flat = _ravel(index, param.shape)
        return flat if cyclic else np.where(outside, -1, flat)

    return source


def _run(distance: int) -> _Source:
    def source(param: Compared) -> Indices:
        return (param.elements + distance) % math.prod(param.shape)

    return source


def _repeated(question: Question) -> Iterator[Explanation]:
    """The same along an axis, as if a broadcast gradient was not summed or a sum was spread."""
    param = question.param
    if param.elements.size != math.prod(param.shape) or not np.isfinite(param.backprop).all():
        return
    order = np.argsort(param.elements)
    back = np.argsort(order)
    a, n, u = (x[order].reshape(param.shape) for x in (param.backprop, param.numeric, param.uncertainty))
    for axis in _long_axes(param):
        if np.ptp(a, axis=axis).max() > param.tolerance * np.abs(a).max():
            continue
        name = param.along(axis)
        made = (
            (n.sum(axis, keepdims=True), f"the sum of the numeric gradient along {name}, in each place"),
            (n.mean(axis, keepdims=True), f"the mean of the numeric gradient along {name}, in each place"),
            (n.take([0], axis), f"the numeric gradient at {name} = 0, repeated along {name}"),
            (n.take([-1], axis), f"the numeric gradient at the last {name}, repeated along {name}"),
        )
        error = _spread(u.sum(axis, keepdims=True), param.shape, back)
        for values, words in made:
            yield Explanation(words, _spread(values, param.shape, back), error)
        yield Explanation(
            f"is constant along {name}, unlike the numeric gradient,",
            _spread(a.mean(axis, keepdims=True), param.shape, back),
            np.zeros(a.size),
            fitted=a.size // a.shape[axis],
            statement=True,
        )


def _spread(values: Array, shape: tuple[int, ...], order: Indices) -> Array:
    """Values repeated to a shape, in the order of the judged elements."""
    flat: Array = np.broadcast_to(values, shape).ravel()[order]
    return flat


def _elsewhere(question: Question) -> Iterator[Explanation]:
    """The same set of values in another order, which may keep some of the indices."""
    param = question.param
    wrong = np.flatnonzero(question.wrong)
    a, n = param.backprop[wrong], param.numeric[wrong]
    if not np.isfinite(a).all():
        return
    distance = float(np.sqrt(np.mean((np.sort(a) - np.sort(n)) ** 2)))
    if distance > _NEARER * float(np.std(n)) / np.sqrt(n.size):
        return
    to, source = np.argsort(a, kind="stable"), np.argsort(n, kind="stable")
    prediction, uncertainty = param.numeric.copy(), param.uncertainty.copy()
    prediction[wrong[to]], uncertainty[wrong[to]] = n[source], param.uncertainty[wrong][source]
    kept = [
        axis
        for axis in _long_axes(param)
        if np.mean(param.index[axis][wrong[to]] == param.index[axis][wrong[source]]) >= 0.9
    ]
    yield Explanation(
        "has the values of the numeric gradient in other places",
        prediction,
        uncertainty,
        fitted=wrong.size // 2,
        aside=_kept(param, kept),
        statement=True,
        applies=question.wrong,
    )


def _kept(param: Compared, kept: list[int]) -> str:
    last = len(param.shape) - 1
    others = [axis for axis in _long_axes(param) if axis != last]
    if kept == [last]:
        return "i0 stays the same: rows have changed places"
    if kept and kept == others:
        return "each within its row"
    return f"{' and '.join(param.along(axis) for axis in kept)} the same" if kept else ""
