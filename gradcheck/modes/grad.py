"""grad: backprop against numeric gradients."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.model.job import Settings
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Batch, Bench, Program
from gradcheck.modes.grad_verdict import ParamGradient, judge
from gradcheck.numerics.differences import LADDER, Derivative, Output, differentiate, typical_step
from gradcheck.numerics.elements import pick_elements
from gradcheck.numerics.gradient_metrics import compare
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs

_F32_EPS = float(np.finfo(np.float32).eps)
#: With values on this grid and steps that are multiples of it, a cast to f16 or bf16 on the way is exact,
#: where it would otherwise turn the function into a staircase.
_NARROW_GRID = 2.0**-5
_NARROW_STEP = 2.0**-4
#: Elements moved in one batch: enough to hide the cost of a call, few enough to be built fast.
_MOVES = 16
#: Forward evaluations read the whole output; a case may read this many elements of it at each of its points.
_WORK = 2**25
#: Elements of a param that are judged whatever the size of the output.
_FEWEST = 256
#: A batch's outputs should stay in the cache of a core while they are differenced.
_BATCH_OUTPUTS = 2**20


def run(case: Case, bench: Bench) -> Outcome:
    """Check every param of a case: sample, backprop, difference, judge."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    if not case.params:
        return Outcome(Status.SKIP, "no input is differentiated")
    settings = bench.settings
    program = bench.target.open(case, backward=True)
    try:
        values = _inputs(case, program, settings.seed)
        program.load(values)
        y = program.forward()
        v = sample_cotangent(settings.cotangent, y.shape, generator(settings.seed, case.id, "cotangent"))
        gradients = program.backward(v)
        overwrites = tuple(program.overwrites())
        elements = _elements(case, settings, y.size)
        moves = _moves(y.size, max(picked.size for picked in elements.values()))
        batch = bench.target.batch(case, values, 4 * moves)
        try:
            differencing = _Differencing(case, program, batch, Output.of(y, v))
            params = [_param(spec, elements[spec.name], gradients[spec.name], differencing) for spec in case.params]
        finally:
            batch.free()
    finally:
        program.free()
    return judge(params, limits_for("grad", case, settings), case.gradient == "zero", overwrites)


def _inputs(case: Case, program: Program, seed: int) -> dict[str, Array]:
    values = sample_inputs(case, seed)
    if not _narrow(program):
        return values
    on_grid = {spec.name for spec in case.inputs if spec.init.kind == "uniform"}
    return {
        name: np.round(value / _NARROW_GRID) * _NARROW_GRID if name in on_grid else value
        for name, value in values.items()
    }


def _narrow(program: Program) -> bool:
    """Whether a type narrower than f32 stands on the way."""
    return program.narrowest_eps > _F32_EPS


def _elements(case: Case, settings: Settings, outputs: int) -> dict[str, NDArray[np.int64]]:
    limit = min(settings.max_elements, max(_FEWEST, _WORK // max(1, outputs)))
    return {
        spec.name: pick_elements(
            tuple(reversed(spec.ne)),
            limit,
            generator(settings.seed, case.id, "elements", spec.name),
        )
        for spec in case.params
    }


def _moves(outputs: int, elements: int) -> int:
    """Elements in one call: each takes four copies of the graph."""
    return max(1, min(_MOVES, elements, _BATCH_OUTPUTS // max(1, 4 * outputs)))


@dataclass(frozen=True)
class _Differencing:
    """What the differences of all params of a case have in common."""

    case: Case
    program: Program
    batch: Batch
    output: Output

    def derivative(self, spec: Input, elements: NDArray[np.int64]) -> Derivative:
        """The numeric gradient of one param at `elements`."""
        narrow = _narrow(self.program)
        x = self.program.stored(spec.name).ravel().astype(np.float32)
        fixed = self.case.step or (_NARROW_STEP if narrow else None)
        return differentiate(
            lambda where, to: self.batch.evaluate(spec.name, where, to),
            x,
            elements,
            self.output,
            step=typical_step(x, fixed),
            per_call=max(1, self.batch.copies // 4),
            # On the grid of a narrow type no other step is exact.
            ladder=(1.0,) if narrow else LADDER,
        )


def _param(
    spec: Input, elements: NDArray[np.int64], gradient: Array | None, differencing: _Differencing
) -> ParamGradient:
    shape = tuple(reversed(spec.ne))
    derivative = differencing.derivative(spec, elements)
    fits = gradient is not None and gradient.shape == shape
    a = gradient.ravel() if gradient is not None and fits else np.zeros(math.prod(shape))
    return ParamGradient(
        name=spec.name,
        shape=shape,
        elements=elements,
        judged=compare(a[elements], derivative),
        gradient_shape=None if gradient is None else gradient.shape,
        evaluations=derivative.evaluations,
        finite_everywhere=bool(np.isfinite(a).all()),
    )
