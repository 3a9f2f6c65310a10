"""The inputs of an op as views: same shape, same kind of values, another layout in memory.

Every f32 param is made larger or stored in another order, and the first statements of the graph take a view of it
under its own name. Elements outside of a view have a gradient of exactly zero, which is checked like any other.
"""

from collections.abc import Callable
from dataclasses import replace

from gradcheck.model.case import Case, Input, Shape

#: Kinds of values that mean the same in a tensor of any shape.
SHAPELESS = frozenset({"uniform", "normal", "positive", "distinct", "constant"})

#: An input as it is stored, and the expression that gives the view; None where the layout is no other one.
Stored = tuple[Input, str] | None


def sliced(case: Case) -> tuple[Case, ...]:
    """Each f32 param is a view into a tensor that is larger along every axis, with an offset along each."""
    return _laid_out(case, "sliced", _sliced)


def padded(case: Case) -> tuple[Case, ...]:
    """Each f32 param has rows that are longer in memory, without an offset."""
    return _laid_out(case, "padded", _padded)


def permuted(case: Case) -> tuple[Case, ...]:
    """Each f32 param is stored with two of its outer axes swapped: its rows stay whole."""
    return _laid_out(case, "permuted", _permuted)


def transposed(case: Case) -> tuple[Case, ...]:
    """Each f32 param is stored with its rows as columns: neighbours in a row are apart in memory."""
    return _laid_out(case, "transposed", _transposed)


def movable(case: Case, declared: Input) -> bool:
    """Whether an input can be stored in another way, and differentiated all the same."""
    return (
        declared.param
        and declared.type == "f32"
        and declared.init.kind in SHAPELESS
        and not declared.written
        and min(declared.ne) > 0
        # What the output picks is looked up in the input as it is stored.
        and not (case.picks and case.picks.source == declared.name)
    )


def _laid_out(case: Case, name: str, store: Callable[[Input], Stored]) -> tuple[Case, ...]:
    found = {i.name: stored for i in case.inputs if movable(case, i) and (stored := store(i))}
    if not found:
        return ()
    inputs = tuple(found[i.name][0] if i.name in found else i for i in case.inputs)
    views = [f"{name} = {view}" for name, (_, view) in found.items()]
    return (replace(case, variant=name, inputs=inputs, graph="\n".join([*views, case.graph])),)


def _sliced(declared: Input) -> Stored:
    n0, n1, n2, n3 = declared.ne
    larger = (n0 + 1, n1 + 1, n2 + 1, n3 + 1)
    offset = " + ".join(f"{declared.name}.nb[{axis}]" for axis in range(4))
    return replace(declared, ne=larger), _view(declared, offset)


def _padded(declared: Input) -> Stored:
    n0, n1, n2, n3 = declared.ne
    if max(n1, n2, n3) == 1:
        return None  # a single row has no next one
    return replace(declared, ne=(n0 + 1, n1, n2, n3)), _view(declared, "0")


def _view(declared: Input, offset: str) -> str:
    name = declared.name
    sizes = ", ".join(map(str, declared.ne))
    return f"view_4d({name}, {sizes}, {name}.nb[1], {name}.nb[2], {name}.nb[3], {offset})"


def _permuted(declared: Input) -> Stored:
    pairs = ((1, 2), (2, 3), (1, 3))
    return next((_swapped(declared, *pair) for pair in pairs if _both_wide(declared.ne, *pair)), None)


def _transposed(declared: Input) -> Stored:
    return next((_swapped(declared, 0, axis) for axis in (1, 2, 3) if _both_wide(declared.ne, 0, axis)), None)


def _both_wide(ne: Shape, first: int, second: int) -> bool:
    return ne[first] > 1 and ne[second] > 1


def _swapped(declared: Input, first: int, second: int) -> Stored:
    axes = [0, 1, 2, 3]
    axes[first], axes[second] = second, first
    n0, n1, n2, n3 = (declared.ne[axis] for axis in axes)
    # A swap is its own inverse.
    return replace(declared, ne=(n0, n1, n2, n3)), f"permute({declared.name}, {', '.join(map(str, axes))})"
