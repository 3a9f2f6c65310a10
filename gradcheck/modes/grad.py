"""grad: backprop against numeric gradients."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.model.job import Settings
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Batch, Bench, Program
from gradcheck.modes.conduct import misbehaviour
from gradcheck.modes.grad_verdict import ParamGradient, judge
from gradcheck.numerics.differences import LADDER, Derivative, Output, confirm, differentiate, typical_step
from gradcheck.numerics.gradient_metrics import compare
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs
from gradcheck.numerics.structure import Evaluate, Indices, Moves, dense, probe, structured

_F32_EPS = float(np.finfo(np.float32).eps)
#: With values on this grid and steps that are multiples of it, a cast to f16 or bf16 on the way is exact,
#: where it would otherwise turn the function into a staircase.
_NARROW_GRID = 2.0**-5
_NARROW_STEP = 2.0**-4
#: Moves in one batch, of four evaluations each: enough to hide the cost of a call, few enough to be built fast.
_MOVES = 8
#: Every evaluation reads the whole output; the evaluations of a param may read this many elements in all.
_WORK = 2**25
#: Moves that are made whatever the size of the output.
_FEWEST = 256
#: A batch's outputs should stay in the cache of a core while they are differenced.
_BATCH_OUTPUTS = 2**20
#: Probes move elements by more than any step of the ladder does.
_PROBE = 1.25


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
        if faults := misbehaviour(program):
            # Many copies side by side would only spoil each other, and the worker.
            return Outcome(Status.FAIL, "; ".join(faults))
        batch = bench.target.batch(case, values, 4 * _moves(case, y.size))
        try:
            differencing = _Differencing(case, settings, program, batch, Output.of(y, v))
            params = [_param(spec, gradients[spec.name], differencing) for spec in case.params]
        finally:
            batch.free()
    finally:
        program.free()
    return judge(params, limits_for("grad", case, settings), zero=case.gradient == "zero")


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


def _moves(case: Case, outputs: int) -> int:
    """Moves in one batch."""
    elements = max(math.prod(spec.ne) for spec in case.params)
    return max(1, min(_MOVES, elements, _BATCH_OUTPUTS // max(1, 4 * outputs)))


@dataclass(frozen=True)
class _Differencing:
    """What the differences of all params of a case have in common."""

    case: Case
    settings: Settings
    program: Program
    batch: Batch
    output: Output

    def derivative(self, spec: Input) -> tuple[Indices, Derivative]:
        """The numeric gradient of one param, and the flat elements at which it is known."""
        shape = tuple(reversed(spec.ne))
        x = self.program.stored(spec.name).ravel().astype(np.float32)
        moves, spent = self._structured(spec, shape, x)
        derivative = self._differentiate(spec, x, moves)
        spent += derivative.evaluations
        if moves.owner is not None:
            step = self._step(x)
            rng = self._rng(spec, "direction")
            spent += 4
            if not confirm(self._evaluate(spec), x, moves, derivative, self.output, step=step, rng=rng):
                moves = dense(shape, self._limit(1), self._rng(spec, "elements"))
                derivative = self._differentiate(spec, x, moves)
                spent += derivative.evaluations
        return moves.elements.ravel(), replace(derivative, evaluations=spent)

    def _structured(self, spec: Input, shape: tuple[int, ...], x: NDArray[np.float32]) -> tuple[Moves, int]:
        """What to move together; few elements are sooner moved one by one than probed."""
        rng = self._rng(spec, "elements")
        probes = 4 * sum((size - 1).bit_length() for size in shape)
        if 4 * x.size <= 2 * probes:
            return dense(shape, self._limit(1), rng), 0
        step = _PROBE * max(self._ladder) * self._step(x)
        found = probe(self._evaluate(spec), x, shape, step, self.batch.copies, self._rng(spec, "probe"))
        together = math.prod(shape[axis] for axis in found.owners)
        return structured(found, self._limit(together), rng), found.probes

    def _differentiate(self, spec: Input, x: NDArray[np.float32], moves: Moves) -> Derivative:
        return differentiate(
            self._evaluate(spec),
            x,
            moves,
            self.output,
            step=self._step(x),
            per_call=max(1, self.batch.copies // 4),
            ladder=self._ladder,
        )

    def _evaluate(self, spec: Input) -> Evaluate:
        return lambda elements, x: self.batch.evaluate(spec.name, elements, x)

    def _limit(self, together: int) -> int:
        """How many moves may be made when each moves so many elements."""
        work = max(_FEWEST, _WORK // max(1, self.output.cotangent.size))
        return max(1, min(self.settings.max_elements // together, work))

    def _step(self, x: NDArray[np.float32]) -> float:
        return typical_step(x, self.case.step or (_NARROW_STEP if _narrow(self.program) else None))

    @property
    def _ladder(self) -> tuple[float, ...]:
        # On the grid of a narrow type no other step is exact.
        return (1.0,) if _narrow(self.program) else LADDER

    def _rng(self, spec: Input, purpose: str) -> Generator:
        return generator(self.settings.seed, self.case.id, purpose, spec.name)


def _param(spec: Input, gradient: Array | None, differencing: _Differencing) -> ParamGradient:
    shape = tuple(reversed(spec.ne))
    elements, derivative = differencing.derivative(spec)
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
