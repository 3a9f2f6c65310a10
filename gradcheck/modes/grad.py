"""grad: backprop against numeric gradients."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.model.job import Settings
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.agreement import Plain, agree
from gradcheck.modes.bench import Array, Bench, Program
from gradcheck.modes.conduct import misbehaviour
from gradcheck.modes.differencing import Differencing, Numeric, is_narrow
from gradcheck.modes.grad_diagnosis import AtHand
from gradcheck.modes.grad_verdict import ParamGradient, judge
from gradcheck.numerics.gradient_metrics import compare, rms
from gradcheck.numerics.projection import Output
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs

#: With values on this grid and steps that are multiples of it, a cast to f16 or bf16 on the way is exact,
#: where it would otherwise turn the function into a staircase.
_NARROW_GRID = 2.0**-5
#: Moves in one batch, of four evaluations each: enough to hide the cost of a call, few enough to be built fast.
_MOVES = 8
#: A batch's outputs should stay in the cache of a core while they are differenced.
_BATCH_OUTPUTS = 2**20

#: Cotangents for a case that one of them left undecided.
_MORE_COTANGENTS = 4

Gradients = dict[str, Array | None]


def run(case: Case, bench: Bench) -> Outcome:
    """Check every param of a case: sample, backprop, difference, judge."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    if not case.params:
        return Outcome(Status.SKIP, "no input is differentiated")
    outcome = _check(case, bench, bench.settings)
    if outcome.status is Status.VACUOUS and bench.settings.cotangents == 1 and bench.settings.cotangent == "random":
        # The gradient of a few elements can vanish in rounding by chance: with other cotangents it will not.
        return _check(case, bench, replace(bench.settings, cotangents=_MORE_COTANGENTS))
    return outcome


def _check(case: Case, bench: Bench, settings: Settings) -> Outcome:
    program = bench.target.open(case, backward=True)
    try:
        values = _inputs(case, program, settings.seed)
        program.load(values)
        y = program.forward()
        cotangents = _cotangents(case, settings, y.shape)
        gradients = [program.backward(v) for v in cotangents]
        if faults := misbehaviour(program):
            # Many copies side by side would only spoil each other, and the worker.
            return Outcome(Status.FAIL, "; ".join(faults))
        agreement = agree(case, bench, program, Plain(values, y, cotangents[0], gradients[0]))
        batch = bench.target.batch(case, values, 4 * _moves(case, y.size))
        try:
            differencing = Differencing(case, settings, program, batch, Output.of(y, cotangents))
            params = [param for spec in case.params for param in _params(spec, gradients, differencing)]
        finally:
            batch.free()
    finally:
        program.free()
    at_hand = AtHand(values, y, cotangents)
    limits = limits_for("grad", case, settings)
    return agreement.onto(judge(params, limits, zero=case.gradient == "zero", at_hand=at_hand))


def _inputs(case: Case, program: Program, seed: int) -> dict[str, Array]:
    values = sample_inputs(case, seed)
    if not is_narrow(program):
        return values
    on_grid = {spec.name for spec in case.inputs if spec.init.kind == "uniform"}
    return {
        name: np.round(value / _NARROW_GRID) * _NARROW_GRID if name in on_grid else value
        for name, value in values.items()
    }


def _cotangents(case: Case, settings: Settings, shape: tuple[int, ...]) -> Array:
    """(cotangents, *shape): of several one is ones, the first where that kind is asked for, else the last."""
    kinds = ["random"] * settings.cotangents
    if settings.cotangent == "ones":
        kinds[0] = "ones"
    elif len(kinds) > 1:
        kinds[-1] = "ones"
    return np.stack(
        [
            sample_cotangent(each, shape, generator(settings.seed, case.id, "cotangent", *([str(k)] if k else [])))
            for k, each in enumerate(kinds)
        ]
    )


def _moves(case: Case, outputs: int) -> int:
    """Moves in one batch."""
    elements = max(math.prod(spec.ne) for spec in case.params)
    return max(1, min(_MOVES, elements, _BATCH_OUTPUTS // max(1, 4 * outputs)))


def _params(spec: Input, gradients: Sequence[Gradients], differencing: Differencing) -> list[ParamGradient]:
    """The comparison of one param, for every cotangent and everything that was found about it."""
    shape = tuple(reversed(spec.ne))
    made = [each[spec.name] for each in gradients]
    # What is missing or misshapen fails for that; zeros stand in for it.
    flat = np.stack([np.zeros(math.prod(shape)) if g is None or g.shape != shape else g.ravel() for g in made])
    param = differencing.param(spec)
    # There is no derivative at infinity, so nothing is asked of what ggml has for it.
    flat[:, param.fixed] = 0.0
    return [
        _param(spec.name, shape, made[k], flat[k], found, k, size)
        for found in differencing.numeric(param, flat)
        for size in [max(rms(value) for value in found.derivative.value)]
        for k in range(len(made))
    ]


def _param(
    name: str,
    shape: tuple[int, ...],
    made: Array | None,
    flat: NDArray[np.float64],
    found: Numeric,
    cotangent: int,
    size: float,
) -> ParamGradient:
    return ParamGradient(
        name=name,
        shape=shape,
        elements=found.elements,
        judged=compare(found.backprop[cotangent], found.derivative.of(cotangent), size),
        gradient_shape=None if made is None else made.shape,
        evaluations=found.derivative.evaluations,
        finite_everywhere=bool(np.isfinite(flat).all()),
        method=found.method,
        cotangent=cotangent,
    )
