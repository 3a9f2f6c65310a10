"""Values of the params that kernels and rules stumble over, inside the domain that the case declares."""

import math
from collections.abc import Callable
from dataclasses import replace

from gradcheck.model.case import Case, Init, Input
from gradcheck.variants.operands import differentiating

#: Inits whose values are drawn from a range, one by one.
_DRAWN = frozenset({"uniform", "normal", "positive", "distinct"})
#: Ops whose gradient is zero for negative numbers.
_ZERO_BELOW_ZERO = frozenset({"RELU", "RELU_SQR"})
#: Ops with a value at infinity, which leave every other element as it is: they move elements, or map each by itself.
_AT_INFINITY = frozenset(
    """
    ABS ACC ADD ADD1 ARGMAX ARGSORT CEIL CLAMP CONCAT CONT DIAG_MASK_INF DUP ELU EXP EXPM1 FLOOR GET_ROWS
    HARDSIGMOID LEAKY_RELU NEG PAD PERMUTE RELU REPEAT RESHAPE ROLL ROUND SCALE SET SGN SIGMOID SOFTPLUS SQR STEP
    SUB TANH TOP_K TRANSPOSE TRUNC VIEW
    """.split()  # noqa: SIM905 -- a list would be a page
)
#: Ops in which -inf alone has a meaning: what it masks has no share.
_AT_MINUS_INFINITY = frozenset({"SOFT_MAX"})
#: Ops whose exact result is zero for equal elements: what comes out is rounding, which has no right value.
_ZERO_OF_EQUALS = frozenset({"RMS_NORM_BACK", "SOFT_MAX_BACK"})
#: A tensor this large has a special element; one in so many, so that kinks stay below their limit.
_FEWEST = 32


def special(case: Case) -> tuple[Case, ...]:
    """A few elements of each param are 0, -0, denormal or as small as a normal number can be."""
    return _with_data(case, "special", _takes_special)


def infinite(case: Case) -> tuple[Case, ...]:
    """One element of the first param is inf and another one -inf, or -inf alone where the op masks with it."""
    if case.graph.count("(") > 1:
        return ()  # another op may have none
    for ops, data in ((_AT_INFINITY, "infinite"), (_AT_MINUS_INFINITY, "negative_infinite")):
        suited = [name for name in _suited(case, _takes_infinities) if case.op in ops]
        if suited:
            (made,) = _with(case, "infinite", data, suited[:1])
            # What another param changes in an infinite output is not to be seen.
            return (differentiating(made, suited[0], "beside an infinite operand"),)
    return ()


def negative(case: Case) -> tuple[Case, ...]:
    """All elements of each param are negative."""
    made = _with_data(case, "negative", _takes_negative)
    # Nothing may come through there.
    return tuple(replace(one, gradient="zero") for one in made) if case.op in _ZERO_BELOW_ZERO else made


def spike(case: Case) -> tuple[Case, ...]:
    """One element of each param is much larger than the others."""
    return _with_data(case, "spike", _takes_any_size)


def constant(case: Case) -> tuple[Case, ...]:
    """All elements of each param are equal."""
    if case.op in _ZERO_OF_EQUALS or (case.op == "NORM" and dict(case.vars).get("eps") == 0.0):
        return ()  # 0 / 0 without eps
    return _with_data(case, "constant", _takes_any_size)


def ascending(case: Case) -> tuple[Case, ...]:
    """The elements of each param are in ascending order."""
    return _with_data(case, "sorted", lambda _declared: True)


def _with_data(case: Case, data: str, takes: Callable[[Input], bool]) -> tuple[Case, ...]:
    suited = _suited(case, takes)
    return _with(case, data, data, suited) if suited else ()


def _with(case: Case, variant: str, data: str, names: list[str]) -> tuple[Case, ...]:
    inputs = tuple(replace(i, init=replace(i.init, data=data)) if i.name in names else i for i in case.inputs)
    return (replace(case, variant=variant, inputs=inputs),)


def _suited(case: Case, takes: Callable[[Input], bool]) -> list[str]:
    """The params whose values can be others."""
    return [i.name for i in case.params if i.init.kind in _DRAWN and not i.written and math.prod(i.ne) > 1 and takes(i)]


def _takes_special(declared: Input) -> bool:
    low, high = _range(declared.init)
    return _takes_any_size(declared) and low <= 0.0 <= high and math.prod(declared.ne) >= _FEWEST


def _takes_infinities(declared: Input) -> bool:
    return math.prod(declared.ne) >= 2 * _FEWEST and declared.ne[0] > 1


def _takes_negative(declared: Input) -> bool:
    low, high = _range(declared.init)
    if declared.init.kind == "distinct" or low >= 0.0:
        return False
    return _argument(declared.init, "gap") is None or low == -high


def _takes_any_size(declared: Input) -> bool:
    # Of distinct values the distance counts as well, which must not shrink beside the step of a derivative.
    return declared.init.kind != "distinct" and _argument(declared.init, "gap") is None


def _range(init: Init) -> tuple[float, float]:
    low, high = _argument(init, "low"), _argument(init, "high")
    return (-math.inf, math.inf) if low is None or high is None else (low, high)


def _argument(init: Init, name: str) -> float | None:
    value = dict(init.args).get(name)
    return float(value) if isinstance(value, int | float) else None
