"""Which of the inputs are differentiated, and how large they are beside one another."""

from dataclasses import replace

from gradcheck.model.case import Case, Input, Shape
from gradcheck.variants.layout import movable


def alone(case: Case) -> tuple[Case, ...]:
    """Each param by itself, the others without a gradient, where there are two or more."""
    if len(case.params) < 2:
        return ()
    return tuple(
        replace(differentiating(case, kept.name, "alone"), variant=f"alone:{kept.name}") for kept in case.params
    )


def differentiating(case: Case, name: str, reason: str) -> Case:
    """The case with one param alone; `reason` says why the others are none."""

    def without(declared: Input) -> Input:
        other = declared.param and declared.name != name
        return replace(declared, param=False, reason=reason) if other else declared

    return replace(case, inputs=tuple(without(declared) for declared in case.inputs))


def broadcast(case: Case) -> tuple[Case, ...]:
    """The second of two f32 params of one shape has size 1 along an axis, for each axis in turn.

    Not where a case looks at its params through views, which say their sizes themselves.
    """
    if "view_" in case.graph:
        return ()
    params = [declared for declared in case.params if movable(case, declared)]
    pair = next(((a, b) for at, a in enumerate(params) for b in params[at + 1 :] if a.ne == b.ne), None)
    if pair is None:
        return ()
    _, second = pair
    return tuple(
        replace(
            case,
            variant=f"broadcast:{axis}",
            inputs=tuple(replace(i, ne=_single(i.ne, axis)) if i is second else i for i in case.inputs),
        )
        for axis in range(4)
        if second.ne[axis] > 1
    )


def _single(ne: Shape, axis: int) -> Shape:
    n0, n1, n2, n3 = (1 if at == axis else size for at, size in enumerate(ne))
    return n0, n1, n2, n3
