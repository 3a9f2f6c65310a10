"""Hypotheses that know the numeric gradient of each element and nothing of its place: factors, offsets, noise."""

from collections.abc import Iterator

import numpy as np

from gradcheck.numerics.diagnosis.compared import Array, Compared, Explanation, Mask, Question
from gradcheck.numerics.diagnosis.numbers import decimal, is_plain, length, simple

#: Elements that it takes to tell both signs, or a distribution, from chance.
_MANY = 16
#: Elements below which two numbers may be off by the same amount by chance.
_FEWEST = 3
#: Errors above this share of the gradient are not taken for low precision.
_NOISE = 2.0**-6
#: What is below this share of the gradient's RMS is as good as 0.
_NOTHING = 1e-9
#: The median error is a larger share of their RMS than this where it is not a few elements that err.
_EVEN = 0.15
#: Types by the largest relative error of their rounding.
_ROUNDINGS = (("bf16", 2.0**-8), ("f16", 2.0**-11))


def by_value(question: Question) -> Iterator[Explanation]:
    """From the plainest to what needs two numbers."""
    yield from _zero(question)
    yield from _no_influence(question)
    yield from _magnitude(question)
    yield from _factor(question)
    yield from _offset(question)


def _zero(question: Question) -> Iterator[Explanation]:
    a = question.param.backprop
    if not next_to_zero(question.param)[question.wrong].all():
        return
    largest = float(np.abs(a[question.wrong]).max())
    words = f"is next to 0 ({largest:.2g} at most)" if largest else "is 0"
    yield Explanation(words, np.zeros_like(a), np.zeros_like(a), statement=True)


def next_to_zero(param: Compared) -> Mask:
    """Where backprop is 0, or what rounding or denormal rubbish makes of it."""
    nearly: Mask = np.abs(param.backprop) <= _NOTHING * param.rms
    return nearly


def _no_influence(question: Question) -> Iterator[Explanation]:
    """Not backprop's fault, it may be: the output does not change with these elements at all."""
    param = question.param
    if not np.any(param.numeric[question.wrong]):
        applies = param.numeric == 0
        yield Explanation(
            "is not 0 though the forward result does not change",
            param.backprop,
            np.zeros_like(param.backprop),
            aside="forward may not read these elements, or backprop may write too far",
            statement=True,
            applies=applies,
        )


def _magnitude(question: Question) -> Iterator[Explanation]:
    param = question.param
    prediction = np.abs(param.numeric)
    negative = param.resolved & (param.numeric < 0)
    both = min(np.count_nonzero(negative), np.count_nonzero(param.resolved & ~negative))
    # Where it holds for part of the elements alone, that part has another sign, which the factor says better.
    if both >= _MANY and param.agrees(prediction, param.uncertainty).all():
        yield Explanation("the absolute value of the numeric gradient", prediction, param.uncertainty)


def _factor(question: Question) -> Iterator[Explanation]:
    param = question.param
    usable = question.wrong & param.resolved
    if not usable.any():
        usable = question.wrong & (np.abs(param.numeric) > param.uncertainty)
    if not usable.any():
        return
    a, n, u = param.backprop[usable], param.numeric[usable], param.uncertainty[usable]
    first = float(np.median(a / n))
    # The median is not moved by a few that go astray; the mean of those that follow it has a smaller error.
    near = np.abs(a - first * n) <= abs(first) * (u + 2.0 * param.tolerance * np.abs(n))
    if not near.any():
        return
    a, n, u = a[near], n[near], u[near]
    value = float((a @ n) / (n @ n))
    spread = float(np.linalg.norm(a - value * n) / np.linalg.norm(n)) / np.sqrt(max(1, a.size - 1))
    own = float(np.linalg.norm(u * n) / (n @ n))
    error = 4.0 * max(spread, abs(value) * own) + 2e-5 * abs(value)
    name = simple(value, error)
    shown = name or decimal(value, error)
    words = "the negative of the numeric gradient" if name == "-1" else f"{shown} times the numeric gradient"
    yield Explanation(
        words,
        value * param.numeric,
        abs(value) * param.uncertainty,
        # A plain number is no number from the data: that it came out so is evidence.
        fitted=0 if name and is_plain(name) else 1,
        aside=_meaning(question, value, error, name),
    )


def _meaning(question: Question, value: float, error: float, name: str) -> str:
    """What may have led to a factor."""
    if value < 0:
        return ""
    param, others = question.param, question.others
    made = length(value, error, param, question.tensors, others)
    if name == "2":
        only = " for this param alone" if others and not any(other.wrong.any() for other in others) else ""
        return f"as if it was added twice{only}" + (f", or by {made}" if made else "")
    if "sqrt" in made or not made:
        return f"that is {made}" if made else "as if one of two equal parts was lost" if name == "1/2" else ""
    if made.startswith("1/"):
        return f"that is {made}: perhaps a mean in place of the sum"
    return f"that is {made}: perhaps a sum in place of the mean"


def _offset(question: Question) -> Iterator[Explanation]:
    param = question.param
    if np.count_nonzero(question.wrong) < _FEWEST:
        return
    difference = param.backprop[question.wrong] - param.numeric[question.wrong]
    value = float(np.median(difference))
    sign = "plus" if value > 0 else "minus"
    error = float(np.median(np.abs(difference - value))) + 1e-5 * abs(value)
    words = f"the numeric gradient {sign} {decimal(abs(value), error)}"
    yield Explanation(words, param.numeric + value, param.uncertainty, fitted=1)


def noise(question: Question) -> str:
    """What the errors are like where they have no pattern but are small: words after "backprop", or ""."""
    param = question.param
    used = param.resolved & np.isfinite(param.backprop)
    if np.count_nonzero(used) < 2 * _MANY or np.count_nonzero(used) < 0.5 * used.size:
        return ""
    n = param.numeric[used]
    error = param.backprop[used] - n
    size = float(np.linalg.norm(error) / np.linalg.norm(n))
    bias = abs(float(np.mean(np.sign(error * n))))
    if size > _NOISE or bias > 4.0 / np.sqrt(n.size) or np.median(np.abs(error)) < _EVEN * _rms(error):
        return ""
    # Of relative errors those of the smaller half are smaller; absolute ones are of one size.
    small = np.abs(n) <= np.median(np.abs(n))
    ratio = _rms(error[small]) / max(_rms(error[~small]), 1e-300)
    relative = ratio < 0.5 * (1.0 + _rms(n[small]) / _rms(n[~small]))
    kind = "in proportion to each element" if relative else "of one size at all elements"
    width = f", as {name} would round" if relative and (name := _rounding(error / n)) else ""
    return f"has errors of random signs, {kind}, {size:.2g} of the gradient (low precision{width})"


def _rounding(relative: Array) -> str:
    """The type whose rounding errors are of this size: uniform within half a unit, so nothing lies far outside."""
    worst = float(np.quantile(np.abs(relative), 0.99))
    return next((name for name, unit in _ROUNDINGS if 0.6 * unit <= worst <= 1.1 * unit), "")


def part(question: Question) -> str:
    """Whether backprop may be a part of a sum, or count one twice: words after "backprop", or "".

    Two terms of a sum are as good as orthogonal in many dimensions; a gradient and an error that is added to it are
    so too, but the parts that are compared here then are not.
    """
    param = question.param
    finite = np.isfinite(param.backprop)
    a, n = param.backprop[finite], param.numeric[finite]
    if np.count_nonzero(question.wrong) < max(4 * _MANY, 0.5 * n.size) or not n.any():
        return ""
    chance = 4.0 / np.sqrt(n.size)
    least = max(0.02, 4.0 * chance**2)
    for some, words in ((a, "may lack a part of the sum"), (a - n, "may count a part of the sum twice")):
        rest = n - some
        share = float(some @ some) / float(n @ n)
        sizes = float(np.linalg.norm(some)) * float(np.linalg.norm(rest))
        if least < share < 1.0 - least and abs(float(some @ rest)) < chance * sizes:
            lost = 1.0 - share if some is a else share
            return f"{words}, about {lost:.0%} of it (the error is orthogonal to the rest)"
    return ""


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
