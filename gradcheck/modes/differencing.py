"""How the gradients of a case's params are found from forward evaluations: which method, which steps, how many."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.model.job import Settings
from gradcheck.modes.bench import Array, Batch, Program
from gradcheck.numerics.differences import LARGEST_FACTOR, Derivative, differentiate, typical_step
from gradcheck.numerics.directions import confirm, directional
from gradcheck.numerics.gradient_metrics import RESOLVED
from gradcheck.numerics.noise import with_measured_noise
from gradcheck.numerics.projection import Output
from gradcheck.numerics.sampling import generator
from gradcheck.numerics.structure import Evaluate, Indices, Moves, dense, probe, structured

_F32_EPS = float(np.finfo(np.float32).eps)
#: A multiple of the grid on which `grad` puts the values where a narrow type is on the way.
_NARROW_STEP = 2.0**-4
#: The elements that all moves of a param may read and write in `auto` when every element of it is judged: minutes, not
#: hours. Where that is not enough, a sample is made with a small part of it.
_WORK, _SAMPLE_WORK = 2**33, 2**29
#: Moves that are made whatever the size of the case.
_FEWEST = 16
#: Of larger params, which would take gigabytes to move as a whole in many ways, `auto` judges a sample.
_LARGEST = 2**22
#: Directions that are looked along where not every element is judged by itself; fewer for the largest params.
_DIRECTIONS, _FEW_DIRECTIONS = 16, 4
#: Probes move elements by more than any step does.
_PROBE = 1.25


def is_narrow(program: Program) -> bool:
    """Whether a type narrower than f32 stands on the way."""
    return program.narrowest_eps > _F32_EPS


@dataclass(frozen=True)
class Numeric:
    """What one method found about a param.

    method: structured, dense, sampled or directional
    elements: the flat elements that were moved, or the numbers of the directions
    backprop: (cotangents, elements), what it is to be compared with
    derivative: its arrays are (cotangents, elements)
    """

    method: str
    elements: Indices
    backprop: Array
    derivative: Derivative


def _is_lost(derivative: Derivative) -> bool:
    """Whether no element can be told from zero by itself, as in the mean over very many; together they may."""
    return bool(derivative.value.size) and not (np.abs(derivative.value) >= RESOLVED * derivative.uncertainty).any()


@dataclass(frozen=True)
class Differencing:
    """What the differences of all params of a case have in common."""

    case: Case
    settings: Settings
    program: Program
    batch: Batch
    output: Output

    def numeric(self, spec: Input, backprop: Array) -> list[Numeric]:
        """The numeric gradient of one param; backprop is (cotangents, elements of the param)."""
        x = self.program.stored(spec.name).ravel().astype(np.float32)
        own, spent = self._with_noise(spec, x)
        if self.settings.method == "directional" and x.size:
            return [own._directional(spec, x, backprop, spent)]
        found = own._elements(spec, x, backprop, spent)
        if self.settings.method == "auto" and (found.method == "sampled" or _is_lost(found.derivative)):
            return [found, own._directional(spec, x, backprop)]
        return [found]

    def _with_noise(self, spec: Input, x: NDArray[np.float32]) -> tuple["Differencing", int]:
        """The same with the noise of the outputs as this param's moves show it, and the evaluations spent."""
        # On the grid of a narrow type nothing is rounded, and off it all is.
        if is_narrow(self.program) or not x.size:
            return self, 0
        rng = self._rng(spec, "noise")
        output, spent = with_measured_noise(self._evaluate(spec), x, self.output, self.batch.copies, rng)
        return replace(self, output=output), spent

    def _elements(self, spec: Input, x: NDArray[np.float32], backprop: Array, spent: int) -> Numeric:
        shape = tuple(reversed(spec.ne))
        moves, probes = self._moves(spec, shape, x)
        derivative = self._differentiate(spec, x, moves)
        spent += probes + derivative.evaluations
        if moves.owner is not None:
            step, rng = self._step(x), self._rng(spec, "direction")
            adapt = not is_narrow(self.program)
            confirmed, looks = confirm(
                self._evaluate(spec), x, moves, derivative, self.output, step=step, rng=rng, adapt=adapt
            )
            spent += looks
            if not confirmed:
                moves = dense(shape, self._limit(x.size, 1), self._rng(spec, "elements"))
                derivative = self._differentiate(spec, x, moves)
                spent += derivative.evaluations
        elements = moves.elements.ravel()
        method = "sampled" if elements.size < x.size else "dense" if moves.owner is None else "structured"
        return Numeric(method, elements, backprop[:, elements], replace(derivative, evaluations=spent))

    def _moves(self, spec: Input, shape: tuple[int, ...], x: NDArray[np.float32]) -> tuple[Moves, int]:
        """What to move together; few elements are sooner moved one by one than probed."""
        rng = self._rng(spec, "elements")
        probes = 2 * sum((size - 1).bit_length() for size in shape)
        too_large = self.settings.method == "auto" and x.size > _LARGEST
        if self.settings.method == "dense" or too_large or x.size <= probes:
            return dense(shape, self._limit(x.size, 1), rng), 0
        step = _PROBE * self._step(x) * (1.0 if is_narrow(self.program) else LARGEST_FACTOR)
        found = probe(self._evaluate(spec), x, shape, step, self.batch.copies, self._rng(spec, "probe"))
        together = math.prod(shape[axis] for axis in found.owners)
        return structured(found, self._limit(x.size, together), rng), found.probes

    def _differentiate(self, spec: Input, x: NDArray[np.float32], moves: Moves) -> Derivative:
        return differentiate(
            self._evaluate(spec),
            x,
            moves,
            self.output,
            step=self._step(x),
            per_call=max(1, self.batch.copies // 4),
            # On the grid of a narrow type no other step is exact.
            adapt=not is_narrow(self.program),
        )

    def _directional(self, spec: Input, x: NDArray[np.float32], backprop: Array, spent: int = 0) -> Numeric:
        count = _DIRECTIONS if x.size <= _LARGEST else _FEW_DIRECTIONS
        claimed, derivative = directional(
            self._evaluate(spec),
            x,
            backprop,
            self.output,
            step=self._step(x),
            rng=self._rng(spec, "directions"),
            count=count,
            adapt=not is_narrow(self.program),
        )
        derivative = replace(derivative, evaluations=spent + derivative.evaluations)
        return Numeric("directional", np.arange(count, dtype=np.int64), claimed, derivative)

    def _evaluate(self, spec: Input) -> Evaluate:
        return lambda elements, x: self.batch.evaluate(spec.name, elements, x)

    def _limit(self, elements: int, together: int) -> int:
        """How many moves may be made of a param when each moves so many of its elements."""
        if self.settings.method == "sampled":
            return max(1, self.settings.max_elements // together)
        moves = max(1, elements // together)
        if self.settings.method != "auto":
            return moves
        size = self.output.base.size + sum(math.prod(spec.ne) for spec in self.case.inputs)
        every = elements <= _LARGEST and moves * size <= _WORK
        return moves if every else max(_FEWEST, _SAMPLE_WORK // size)

    def _step(self, x: NDArray[np.float32]) -> float:
        return typical_step(x, self.case.step or (_NARROW_STEP if is_narrow(self.program) else None))

    def _rng(self, spec: Input, purpose: str) -> Generator:
        return generator(self.settings.seed, self.case.id, purpose, spec.name)
