"""From hypotheses to hedged words: the first that explains the wrong elements, with where and how many they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcheck.numerics.diagnosis.compared import Array, Compared, Explanation, Mask, Question, Tensor
from gradcheck.numerics.diagnosis.lines import by_line
from gradcheck.numerics.diagnosis.orders import by_order
from gradcheck.numerics.diagnosis.origins import by_copy, by_origin
from gradcheck.numerics.diagnosis.places import by_place
from gradcheck.numerics.diagnosis.regions import Place, locate
from gradcheck.numerics.diagnosis.shapes import of_shape
from gradcheck.numerics.diagnosis.values import by_value, next_to_zero, noise, part

_Source = Callable[[Question], Iterator[Explanation]]

#: The plainest first.
_SOURCES: tuple[_Source, ...] = (by_value, by_origin, by_place, by_order, by_copy)
#: Elements of one param that are looked at.
_LARGEST = 2**20
#: Lines for one param.
_LINES = 3
#: Elements beyond what was fitted from which on words are less hedged.
_SURE, _LIKELY = 16, 2
#: Elements of a place that may be right by chance where it is not known why the others are wrong.
_BY_CHANCE = 0.1
#: Of a place whose elements are explained.
_ASTRAY = 0.01
#: The most elements with one factor that are taken apart from the others must be this share of the wrong ones.
_DOMINANT = 0.5


def diagnose(params: Sequence[Compared], tensors: Sequence[Tensor] = ()) -> tuple[str, ...]:
    """What the errors of a case look like: a few lines for each param with wrong elements, none where all are right.

    tensors: inputs, output and cotangent as far as they are known
    Params of which the same is said share a line.
    """
    said: dict[str, list[str]] = {}
    for param in params:
        others = [other for other in params if other is not param]
        for line in list(_lines(param, others, tensors))[:_LINES]:
            said.setdefault(line, []).append(param.name)
    return tuple(f"{', '.join(names)}: {line}" for line, names in said.items())


def _lines(param: Compared, others: Sequence[Compared], tensors: Sequence[Tensor]) -> Iterator[str]:
    if param.gradient_shape is None:
        return
    if param.gradient_shape != param.shape:
        if words := of_shape(param.gradient_shape, param.shape):
            yield f"the gradient is {words}"
        return
    unknown = ~np.isfinite(param.numeric)
    if unknown.any():
        place = _not_finite(param, param.numeric, unknown)
        yield f"the numeric gradient is {place} (forward is so, or a step leaves the domain of the op)"
    judged = param.subset(~unknown & np.isfinite(param.uncertainty))
    kept = _bounded(judged)
    sample = f", a sample of {judged.elements.size}" if kept is not judged else ""
    yield from (line + sample for line in _of_values(kept, others, tensors))


def _of_values(kept: Compared, others: Sequence[Compared], tensors: Sequence[Tensor]) -> Iterator[str]:
    finite = np.isfinite(kept.backprop)
    if not finite.all():
        yield f"backprop is {_not_finite(kept, kept.backprop, ~finite)}"
        kept = kept.subset(finite)
    if kept.wrong.any():
        yield from _finite(Question(kept, kept.wrong, others, tensors))


def _bounded(param: Compared) -> Compared:
    """A param with so many elements at most that it takes no second: wrong ones before others, else at random."""
    if param.elements.size <= _LARGEST:
        return param
    rank = np.random.default_rng(0).random(param.elements.size) - (param.wrong if param.wrong.mean() < 0.5 else 0.0)
    return param.subset(np.sort(np.argpartition(rank, _LARGEST)[:_LARGEST]))


def _not_finite(param: Compared, values: Array, bad: Mask) -> str:
    nan = np.isnan(values[bad])
    kind = "NaN" if nan.all() else "infinite" if not nan.any() else "NaN or infinite"
    return f"{kind} {_where(locate(param, bad, ~bad, 0.0), bad)}"


def _finite(question: Question) -> list[str]:
    """One line that explains all wrong elements, or a line for each of two parts; else where they are."""
    if line := _explained(question, _SOURCES):
        return [line]
    lines, left = [], question.wrong
    for split in (_zeros, _one_factor):
        some = split(question.param, left)
        line = _explained(replace(question, wrong=some), (by_value,)) if some.any() else ""
        if line:
            lines.append(line)
            left = left & ~some
    if not left.any():
        return lines
    rest = replace(question, wrong=left)
    if lines and (line := _explained(rest, _SOURCES)):
        return [*lines, line]
    if line := _explained(question, (by_line,)):
        return [line]
    return [*lines, _unexplained(rest)]


def _explained(question: Question, sources: Sequence[_Source]) -> str:
    for source in sources:
        for explanation in source(question):
            support = question.support(explanation)
            least = 1 if source is by_value else _LIKELY
            if support >= least and (line := _line(question, explanation, support)):
                return line
    return ""


def _line(question: Question, explanation: Explanation, support: int) -> str:
    """The words for an explanation that holds, "" where there is too little for it."""
    param = question.param
    beyond = support - explanation.fitted
    if beyond < 1:
        return ""
    verb = "is" if beyond >= _SURE else "looks like" if beyond >= _LIKELY else "may be"
    words = explanation.words if explanation.statement else f"{verb} {explanation.words}"
    agreeing = param.agrees(explanation.prediction, explanation.uncertainty)
    outside = ~question.wrong & ~agreeing & ~np.isnan(explanation.prediction)
    allowance = _ASTRAY
    if explanation.applies is not None:
        outside |= ~question.wrong & ~explanation.applies
        allowance = _BY_CHANCE
    place = locate(param, question.wrong, outside, allowance)
    aside = f" ({explanation.aside})" if explanation.aside else ""
    return f"backprop {words}{aside} {_where(place, question.wrong)}"


def _where(place: Place, wrong: Mask) -> str:
    aside = f", {place.aside}" if place.aside else ""
    return f"{place.words}{aside}: {np.count_nonzero(wrong)} of {wrong.size} elements"


def _zeros(param: Compared, wrong: Mask) -> Mask:
    zeros: Mask = wrong & next_to_zero(param)
    return zeros


def _one_factor(param: Compared, wrong: Mask) -> Mask:
    """Wrong elements that share the commonest ratio of backprop and numeric, where most of them do."""
    usable = wrong & param.resolved
    none = np.zeros(usable.shape, dtype=np.bool_)
    if np.count_nonzero(usable) < _SURE:
        return none
    ratio = np.sort(param.backprop[usable] / param.numeric[usable])
    many = max(2, int(_DOMINANT * np.count_nonzero(wrong)))
    if many > ratio.size:
        return none
    # The shortest interval with that many ratios in it.
    start = int(np.argmin(ratio[many - 1 :] - ratio[: ratio.size - many + 1]))
    middle = float(ratio[start + many // 2])
    shared: Mask = wrong & param.agrees(middle * param.numeric, abs(middle) * param.uncertainty)
    return shared if np.count_nonzero(shared) >= many else none


def _unexplained(question: Question) -> str:
    """Facts alone: which elements, and how far both sides are alike."""
    param, wrong = question.param, question.wrong
    count = f"{np.count_nonzero(wrong)} of {wrong.size} elements"
    if words := noise(question) or part(question):
        return f"backprop {words}: {count}"
    place = locate(param, wrong, ~wrong, _BY_CHANCE)
    return f"backprop is wrong {_where(place, wrong)}; {_likeness(param.backprop[wrong], param.numeric[wrong])}"


def _likeness(a: Array, n: Array) -> str:
    if a.size == 1 and n[0]:
        return f"it is {a[0] / n[0]:.3g} times numeric there"
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(n))
    if not all(sizes):
        return "no simple pattern"
    with np.errstate(over="ignore"):
        cosine, ratio = float(a @ n) / (sizes[0] * sizes[1]), sizes[0] / sizes[1]
    return f"no simple pattern (its size there is {ratio:.3g} times that of numeric, the cosine {cosine:.3g})"
