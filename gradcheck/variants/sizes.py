"""Rows of lengths at which vector registers, blocks and thread blocks end or begin."""

from collections.abc import Callable
from dataclasses import replace

from gradcheck.language import parse_graph
from gradcheck.model.case import Case

#: One element, and one beside 8, 32, 64 and 128.
TAILS = (1, 7, 31, 33, 65, 129)

#: Parts of names of functions that make a row of one element a constant, whose gradient is zero or all rounding, or
#: whose windows can all miss that element.
_NEED_TWO = ("soft_max", "norm", "cross_entropy", "pool_2d")

#: The case with rows of another length, in all else what its family makes of it; None where there is none.
Resize = Callable[[Case, int], Case | None]


def tails(case: Case, resize: Resize) -> tuple[Case, ...]:
    """The rows have 1, 7, 31, 33, 65 or 129 elements; everything that the case file derives from it follows."""
    if not case.inputs:
        return ()
    usual = case.inputs[0].ne[0]
    least = 2 if any(part in name for name in parse_graph(case.graph).calls for part in _NEED_TWO) else 1
    made = ((size, resize(case, size)) for size in TAILS if size != usual and size >= least)
    return tuple(replace(other, name=case.name, variant=f"tails:{size}") for size, other in made if other is not None)
