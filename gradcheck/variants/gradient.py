"""How a gradient comes to an op, and where it goes: other readers, other layouts, other memory."""

from dataclasses import replace

from gradcheck.language import parse_graph
from gradcheck.model.case import Case


def second_consumer(case: Case) -> tuple[Case, ...]:
    """Each param is read by a second op, before or after the one under test, so that gradients accumulate."""
    if case.picks is not None or _has_infinite_outputs(case):
        return ()
    set_again = {name for name, _ in parse_graph(case.graph).statements}
    params = [i.name for i in case.params if min(i.ne) > 0 and i.name not in set_again]
    if not params:
        return ()
    # Where shapes agree, an op that every backend has will do, and each output keeps to its element. Nodes
    # are computed in the order in which they are reached, and gradients made in the reverse of it.
    before = [f"add(scale({a}, 0.5) if {a}.ne == out.ne else repeat(sum({a}), out), out)" for a in params]
    after = [f"add(out, scale({a}, 0.5) if {a}.ne == out.ne else sum({a}))" for a in params]
    return tuple(
        # The second consumer has a gradient, whatever the op has.
        replace(
            case,
            variant=f"second_consumer:{when}",
            graph="\n".join([case.graph, *(f'out = {sum_} if out.type == "f32" else out' for sum_ in sums)]),
            gradient="nonzero",
            # A copy may be demanded to the last bit; what is added to it rounds.
            limits=tuple((name, limit) for name, limit in case.limits if limit > 0),
        )
        for when, sums in (("before", before), ("after", after))
    )


def _has_infinite_outputs(case: Case) -> bool:
    """Whether outputs are so large that adding to them changes nothing: the sum has no numeric gradient."""
    chosen = dict(case.vars)
    # The maximum of a window that lies in the padding is -FLT_MAX.
    padded = chosen.get("pool_type") == "max" and any(chosen.get(name) for name in ("p0", "p1"))
    return case.op == "DIAG_MASK_INF" or (case.op == "POOL_2D" and padded)


def strided_cotangent(case: Case) -> tuple[Case, ...]:
    """The gradient reaches the op as a view that is not contiguous: what follows is transposed or permuted."""
    if case.picks is not None or not case.params:
        return ()
    views = (("transposed", "transpose(out)"), ("permuted", "permute(out, 0, 2, 1, 3)"))
    return tuple(
        replace(
            case,
            variant=f"strided_cotangent:{how}",
            # Whole numbers have no gradient that could come in any way.
            graph=f'{case.graph}\nout = cont({view}) if out.type in ["f32", "f16"] else out',
        )
        for how, view in views
    )


def accumulator(case: Case) -> tuple[Case, ...]:
    """Gradients are added to what a tensor of the caller holds, as over micro-batches."""
    return (replace(case, variant="accumulator", accumulate=True),) if case.params else ()
