"""Hypotheses that backprop is made of something else that lay at hand: another gradient, the cotangent, an input."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from gradcheck.numerics.diagnosis.compared import Array, Explanation, Question

#: Elements, counted through all candidates, that may be computed; a large tensor is given up sooner.
_WORK = 2**24
#: Different values that it takes to see that they were copied.
_DISTINCT = 4
#: Wrong elements that are looked for before all are.
_TRIED = 16


def by_origin(question: Question) -> Iterator[Explanation]:
    """What backprop may have returned, or forgotten to multiply or divide by."""
    yield from _other_gradient(question)
    yield from _passed_through(question)
    yield from _one_term(question)
    yield from _multiplied(question)


def _other_gradient(question: Question) -> Iterator[Explanation]:
    param = question.param
    for other in question.others:
        if math.prod(other.shape) != math.prod(param.shape):
            continue
        values, errors = other.at(param.elements)
        how = "" if other.shape == param.shape else ", in another shape"
        yield Explanation(f"the numeric gradient of {other.name}{how}", values, errors)


def at_hand(question: Question) -> list[tuple[str, Array]]:
    """Finite tensors that have the param's number of elements, at the elements that were judged."""
    size = math.prod(question.param.shape)
    return [
        (tensor.words, tensor.values.ravel()[question.param.elements])
        for tensor in question.tensors
        if tensor.values.size == size and np.isfinite(tensor.values).all()
    ]


def _passed_through(question: Question) -> Iterator[Explanation]:
    tensors = at_hand(question)
    for words, values in tensors:
        yield Explanation(f"{words} itself", values, np.zeros_like(values))
    for (first, a), (second, b) in itertools.combinations(tensors, 2):
        yield Explanation(f"{first} times {second}", a * b, np.zeros_like(a))


def by_copy(question: Question) -> Iterator[Explanation]:
    """Elements of a tensor from other places than those that belong there: to the last bit, so never by chance."""
    param = question.param
    a = param.backprop[question.wrong]
    few = np.unique(param.backprop[question.sample(_TRIED)])
    if few.size < _DISTINCT:
        return
    for tensor in question.tensors:
        # Inputs may be as they were drawn; the device has float32.
        values = tensor.values.astype(np.float32).ravel()
        for sign, of in ((1.0, "elements of"), (-1.0, "negatives of elements of")):
            if all((values == sign * one).any() for one in few) and np.isin(a, sign * values).all():
                words = f"{of} {tensor.words}, from other places than those that belong there,"
                error = np.zeros_like(param.backprop)
                yield Explanation(words, param.backprop, error, fitted=a.size // 2, applies=question.wrong)


def _multiplied(question: Question) -> Iterator[Explanation]:
    param = question.param
    for words, values in at_hand(question):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inverse = 1.0 / values
            for how, factor in (("times", values), ("divided by", inverse)):
                yield Explanation(
                    f"the numeric gradient {how} {words}",
                    param.numeric * factor,
                    np.abs(factor) * param.uncertainty,
                    aside="a factor too many, or one that is missing",
                )


def _one_term(question: Question) -> Iterator[Explanation]:
    """Of a param that is repeated: the gradient of one repetition, or a sum along some of the axes alone."""
    param = question.param
    for words, values in _larger(question):
        repeats = tuple(there // here for there, here in zip(values.shape, param.shape, strict=True))
        axes = [axis for axis, times in enumerate(repeats) if times > 1]
        if 3 ** len(axes) * values.size > _WORK:
            continue
        # Axis by axis: (repeats, size), as ggml repeats the whole and not each element.
        split = values.reshape([n for pair in zip(repeats, param.shape, strict=True) for n in pair])
        for choice in itertools.product(("first", "last", "all"), repeat=len(axes)):
            if all(which == "all" for which in choice):
                continue
            taken = split
            for axis, which in zip(axes, choice, strict=True):
                taken = (
                    taken.sum(2 * axis, keepdims=True)
                    if which == "all"
                    else taken.take([0 if which == "first" else -1], 2 * axis)
                )
            lacking = [param.along(axis) for axis, which in zip(axes, choice, strict=True) if which != "all"]
            which = " and ".join(f"{w} along {param.along(x)}" for x, w in zip(axes, choice, strict=True) if w != "all")
            flat = taken.ravel()[param.elements]
            yield Explanation(
                f"one term of the sum over the repetitions ({words}, {which})",
                flat,
                np.zeros_like(flat),
                aside=f"the sum along {' and '.join(lacking)} is missing",
            )


def _larger(question: Question) -> Iterator[tuple[str, Array]]:
    """The cotangent, alone and times what has its shape, where the param repeats to that shape."""
    shape = question.param.shape
    first = next((tensor for tensor in question.tensors if tensor.words == "the cotangent"), None)
    if first is None or len(first.values.shape) != len(shape) or first.values.shape == shape:
        return
    if 0 in shape or any(there % here for there, here in zip(first.values.shape, shape, strict=True)):
        return
    yield first.words, first.values
    for tensor in question.tensors:
        alike = tensor is not first and tensor.values.shape == first.values.shape
        if alike and np.isfinite(tensor.values).all():
            yield f"{first.words} times {tensor.words}", first.values * tensor.values
