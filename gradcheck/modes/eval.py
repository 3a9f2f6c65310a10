"""eval: a target against a reference, forward and, if wanted, backward."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case
from gradcheck.model.job import NUMPY, Settings
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Metric, Outcome, Placement
from gradcheck.model.room import demand_room
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Bench, Program, Values
from gradcheck.modes.conduct import misbehaviour
from gradcheck.modes.eval_verdict import compare, element_limit
from gradcheck.modes.held import Held, held_inputs
from gradcheck.modes.placement import misplaced
from gradcheck.numerics.picks import picked
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs

_SHOWN = 5
#: Both outputs in float64, and what comparing them makes on the way.
_BYTES_PER_OUTPUT = 48


def run(case: Case, bench: Bench) -> Outcome:
    """Compute a case on both devices from the same inputs and compare every tensor that comes out."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    program, placement = _open_target(case, bench)
    got = _compute(program, case, bench.settings, None, bench.settings.repeat)
    reference = bench.reference().open(case, backward=bench.settings.backward)
    want = _compute(reference, case, bench.settings, got.held.values, 1)
    limits = limits_for("eval", case, bench.settings)
    compared = [compare(name, got.tensors[name], want.tensors[name]) for name in got.tensors]
    faults = [*misplaced(case, placement, bench.target.name), *got.held.faults, *got.faults]
    reasons = [*faults, *(reason for one in compared for reason in one.reasons(limits))]
    elements = sum(one.got.size for one in compared)
    if not reasons and elements == 0:
        return Outcome(Status.VACUOUS, "the output has no elements", placement=placement)
    return Outcome(
        status=Status.FAIL if reasons else Status.PASS,
        reason="; ".join(reasons),
        metrics=(
            Metric("nmse", float(np.max([one.nmse for one in compared])), limits["nmse"]),
            Metric("element", float(np.max([one.worst for one in compared])), element_limit(limits)),
        ),
        evidence=tuple(evidence for one in compared for evidence in one.evidence())[:_SHOWN],
        counts=(("elements", elements), ("judged", elements)),
        notes=got.held.notes,
        placement=placement,
    )


@dataclass(frozen=True)
class _Computed:
    """What a device made of a case, and what it did wrong on the way."""

    tensors: dict[str, Array]
    faults: tuple[str, ...]
    held: Held


def _open_target(case: Case, bench: Bench) -> tuple[Program, Placement | None]:
    """The case on the target alone or, where the run asks for it, through ggml's scheduler."""
    if not bench.settings.sched:
        return bench.target.open(case, backward=bench.settings.backward), None
    scheduled = bench.target.open_scheduled(case, backward=bench.settings.backward)
    return scheduled, scheduled.placement


def _compute(program: Program, case: Case, settings: Settings, values: Values | None, times: int) -> _Computed:
    """Run a program, and free it. Without values it gets those of the case: making them takes longer than refusing."""
    try:
        demand_room(_BYTES_PER_OUTPUT * math.prod(program.ne), "comparing the output")
        values = values or sample_inputs(case, settings.seed)
        program.load(values)
        held = held_inputs(case, program, values) if settings.reference == NUMPY else Held(values)
        out = program.forward()
        faults = []
        for number in range(2, times + 1):
            differing = int(np.sum(~_same_bits(program.forward(), out)))
            if differing:
                faults.append(f"run {number} differs from run 1 in {differing} elements")
        tensors: dict[str, Array] = {"out": out}
        if case.picks:
            name = case.picks.source
            elements, wrong = picked(out, program.stored(name), ordered=case.picks.ordered)
            tensors = {f"{name}[out]": elements}
            faults += wrong
        if settings.backward:
            v = sample_cotangent(settings.cotangent, out.shape, generator(settings.seed, case.id, "cotangent"))
            tensors |= {f"grad({name})": g for name, g in program.backward(v).items() if g is not None}
        return _Computed(tensors, (*faults, *misbehaviour(program)), held)
    finally:
        program.free()


def _same_bits(a: Array, b: Array) -> NDArray[np.bool_]:
    # Values come from narrower types, so equal bits there are equal bits here, -0 and NaN included.
    same: NDArray[np.bool_] = np.ascontiguousarray(a).view(np.int64) == np.ascontiguousarray(b).view(np.int64)
    return same
