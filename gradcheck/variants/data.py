"""Values of the params that kernels and rules stumble over, inside the domain that the case declares."""

import math
from collections.abc import Callable
from dataclasses import replace

from gradcheck.model.case import Case, Init, Input

#: Inits whose values are drawn from a range, one by one.
_DRAWN = frozenset({"uniform", "normal", "positive", "distinct"})
#: Ops whose gradient is zero for negative numbers.
_ZERO_BELOW_ZERO = frozenset({"RELU", "RELU_SQR"})
#: A tensor this large has a special element; one in so many, so that kinks stay below their limit.
_FEWEST = 32


def special(case: Case) -> tuple[Case, ...]:
    """A few elements of each param are 0, -0, denormal or as small as a normal number can be."""
    return _with_data(case, "special", _takes_special)


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
    return _with_data(case, "constant", _takes_any_size)


def ascending(case: Case) -> tuple[Case, ...]:
    """The elements of each param are in ascending order."""
    return _with_data(case, "sorted", lambda _declared: True)


def _with_data(case: Case, data: str, takes: Callable[[Input], bool]) -> tuple[Case, ...]:
    suited = [
        i.name for i in case.params if i.init.kind in _DRAWN and not i.written and math.prod(i.ne) > 1 and takes(i)
    ]
    if not suited:
        return ()
    inputs = tuple(replace(i, init=replace(i.init, data=data)) if i.name in suited else i for i in case.inputs)
    return (replace(case, variant=data, inputs=inputs),)


def _takes_special(declared: Input) -> bool:
    low, high = _range(declared.init)
    return _takes_any_size(declared) and low <= 0.0 <= high and math.prod(declared.ne) >= _FEWEST


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
