"""Hypotheses that the error is a factor or a term which depends on some of the indices alone.

They are what is seen where a norm, a scale or a term that belongs to a whole row is missing or wrong: soft_max
without the row's dot product is off by a number for each row times the output, and a norm without its mean by a
number for each row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gradcheck.numerics.diagnosis.compared import Array, Compared, Explanation, Indices, Question
from gradcheck.numerics.diagnosis.origins import at_hand

#: Wrong elements that it takes for each number that is fitted.
_EACH = 3
#: Groups that are tried before all are, with so many elements together at most.
_TRIED, _ENOUGH = 32, 4096
_NUMBER = "a number"


@dataclass(frozen=True, eq=False)
class _Model:
    """backprop = added + c basis, with a c for each group. usual: the c of a group where nothing is wrong."""

    words: str
    basis: Array
    added: Array
    usual: float
    aside: str


def by_line(question: Question) -> Iterator[Explanation]:
    """One number for all, then one for each index along an axis, then one for each line along an axis."""
    everything = np.zeros(question.param.elements.size, dtype=np.int64)
    models = list(_models(question))
    for model in models[2:]:
        yield from _fit(question, model, everything, _NUMBER)
    for group, which in _groups(question.param):
        few = _some_groups(question, group)
        part = replace(question, param=question.param.subset(few), wrong=question.wrong[few])
        for model in models:
            small = replace(model, basis=model.basis[few], added=model.added[few])
            if any(part.support(one) for one in _fit(part, small, group[few], which)):
                yield from _fit(question, model, group, which)


def _some_groups(question: Question, group: Indices) -> Indices:
    """Positions of the wrong elements of a few groups, which speak against a wrong hypothesis as all would."""
    chosen = np.zeros(int(group.max()) + 1, dtype=np.bool_)
    chosen[group[question.sample(_TRIED)]] = True
    positions = np.flatnonzero(chosen[group] & question.wrong).astype(np.int64)
    return positions[:: max(1, positions.size // _ENOUGH)]


def _models(question: Question) -> Iterator[_Model]:
    n = question.param.numeric
    scale, term = "a scale or a norm is missing or wrong", "a term is missing, or one too many is there"
    yield _Model("the numeric gradient times {}", n, np.zeros_like(n), 1.0, scale)
    yield _Model("the numeric gradient plus {}", np.ones_like(n), n, 0.0, term)
    for words, values in at_hand(question):
        yield _Model("the numeric gradient plus {} times " + words, values, n, 0.0, term)


def _groups(param: Compared) -> Iterator[tuple[Indices, str]]:
    """Groups of elements that share a number, with its name; fewer groups first."""
    long = [axis for axis in param.axes if param.shape[axis] > 1]
    if len(long) < 2:
        return
    for axis in sorted(long, key=lambda axis: param.shape[axis]):
        yield param.index[axis], f"{_NUMBER} that depends on {param.along(axis)} alone"
    if len(long) > 2:
        for axis in reversed(long):
            stride = int(np.prod(param.shape[axis + 1 :], dtype=np.int64))
            line = param.elements // (stride * param.shape[axis]) * stride + param.elements % stride
            yield line, f"{_NUMBER} that is constant along {param.along(axis)}"


def _fit(question: Question, model: _Model, group: Indices, which: str) -> Iterator[Explanation]:
    """By least squares over the wrong elements of each group."""
    param, wrong = question.param, question.wrong
    groups = int(group.max()) + 1
    spoken = np.bincount(group[wrong], minlength=groups) > 0
    fitted = int(np.count_nonzero(spoken))
    if np.count_nonzero(wrong) < _EACH * fitted:
        return
    basis = model.basis[wrong]
    above = np.bincount(group[wrong], (param.backprop[wrong] - model.added[wrong]) * basis, groups)
    below = np.bincount(group[wrong], basis**2, groups)
    number = np.divide(above, below, out=np.full(groups, model.usual), where=below > 0)[group]
    scaled = np.abs(number) if model.usual else 1.0
    yield Explanation(
        model.words.format(which),
        model.added + number * model.basis,
        scaled * param.uncertainty,
        fitted,
        model.aside,
        applies=spoken[group],
    )
