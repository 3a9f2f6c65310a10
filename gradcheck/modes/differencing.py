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
from gradcheck.numerics.structure import Indices, Moves, dense, probe, structured

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
class Param:
    """A param as the numerics see it: finite, since an infinite element has no neighbours and is held where it is.

    x: the flat values, 0 in place of what is infinite
    fixed: which elements are infinite
    infinities: (elements,) their values, anything elsewhere
    """

    spec: Input
    batch: Batch
    x: NDArray[np.float32]
    fixed: NDArray[np.bool_]
    infinities: NDArray[np.float32]

    @staticmethod
    def of(spec: Input, batch: Batch, stored: Array) -> "Param":
        """From the values that a program holds."""
        values = stored.ravel().astype(np.float32)
        fixed = ~np.isfinite(values)
        return Param(spec, batch, np.where(fixed, np.float32(0), values), fixed, values)

    @property
    def shape(self) -> tuple[int, ...]:
        """In NumPy's order."""
        return tuple(reversed(self.spec.ne))

    def evaluate(self, elements: Indices | None, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Outputs of the batch; see `Evaluate`."""
        if self.fixed.any():
            at = slice(None) if elements is None else elements
            x = np.where(self.fixed[at], self.infinities[at], x)
        return self.batch.evaluate(self.spec.name, elements, x)

    def without_fixed(self, found: Numeric) -> Numeric:
        """The same with what was held left out, as at a kink: no numeric gradient exists there."""
        if not self.fixed.any() or found.method == "directional":
            return found
        gap = np.where(self.fixed[found.elements], np.inf, found.derivative.gap)
        return replace(found, derivative=replace(found.derivative, gap=gap))


@dataclass(frozen=True)
class Differencing:
    """What the differences of all params of a case have in common."""

    case: Case
    settings: Settings
    program: Program
    batch: Batch
    output: Output

    def param(self, spec: Input) -> Param:
        """A param with the values that the program holds."""
        return Param.of(spec, self.batch, self.program.stored(spec.name))

    def numeric(self, param: Param, backprop: Array) -> list[Numeric]:
        """The numeric gradient of one param; backprop is (cotangents, elements of the param), 0 where x is fixed."""
        own, spent = self._with_noise(param)
        if self.settings.method == "directional" and param.x.size:
            return [own._directional(param, backprop, spent)]
        found = own._elements(param, backprop, spent)
        if self.settings.method == "auto" and (found.method == "sampled" or _is_lost(found.derivative)):
            return [param.without_fixed(found), own._directional(param, backprop)]
        return [param.without_fixed(found)]

    def _with_noise(self, param: Param) -> tuple["Differencing", int]:
        """The same with the noise of the outputs as this param's moves show it, and the evaluations spent."""
        # On the grid of a narrow type nothing is rounded, and off it all is.
        if is_narrow(self.program) or not param.x.size:
            return self, 0
        rng = self._rng(param, "noise")
        output, spent = with_measured_noise(param.evaluate, param.x, self.output, self.batch.copies, rng)
        return replace(self, output=output), spent

    def _elements(self, param: Param, backprop: Array, spent: int) -> Numeric:
        x = param.x
        moves, probes = self._moves(param)
        derivative = self._differentiate(param, moves)
        spent += probes + derivative.evaluations
        if moves.owner is not None:
            step, rng = self._step(x), self._rng(param, "direction")
            adapt = not is_narrow(self.program)
            confirmed, looks = confirm(
                param.evaluate, x, moves, derivative, self.output, step=step, rng=rng, adapt=adapt
            )
            spent += looks
            if not confirmed:
                moves = dense(param.shape, self._limit(x.size, 1), self._rng(param, "elements"))
                derivative = self._differentiate(param, moves)
                spent += derivative.evaluations
        elements = moves.elements.ravel()
        method = "sampled" if elements.size < x.size else "dense" if moves.owner is None else "structured"
        return Numeric(method, elements, backprop[:, elements], replace(derivative, evaluations=spent))

    def _moves(self, param: Param) -> tuple[Moves, int]:
        """What to move together; few elements are sooner moved one by one than probed."""
        x, shape, rng = param.x, param.shape, self._rng(param, "elements")
        probes = 2 * sum((size - 1).bit_length() for size in shape)
        too_large = self.settings.method == "auto" and x.size > _LARGEST
        if self.settings.method == "dense" or too_large or x.size <= probes:
            return dense(shape, self._limit(x.size, 1), rng), 0
        step = _PROBE * self._step(x) * self._largest
        found = probe(param.evaluate, x, shape, step, self.batch.copies, self._rng(param, "probe"))
        together = math.prod(shape[axis] for axis in found.owners)
        return structured(found, self._limit(x.size, together), rng), found.probes

    def _differentiate(self, param: Param, moves: Moves) -> Derivative:
        return differentiate(
            param.evaluate,
            param.x,
            moves,
            self.output,
            step=self._step(param.x),
            per_call=max(1, self.batch.copies // 4),
            # On the grid of a narrow type no other step is exact.
            adapt=not is_narrow(self.program),
            largest=self._largest,
        )

    def _directional(self, param: Param, backprop: Array, spent: int = 0) -> Numeric:
        x = param.x
        count = _DIRECTIONS if x.size <= _LARGEST else _FEW_DIRECTIONS
        claimed, derivative = directional(
            param.evaluate,
            x,
            backprop,
            self.output,
            step=self._step(x),
            rng=self._rng(param, "directions"),
            count=count,
            adapt=not is_narrow(self.program),
        )
        derivative = replace(derivative, evaluations=spent + derivative.evaluations)
        return Numeric("directional", np.arange(count, dtype=np.int64), claimed, derivative)

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

    @property
    def _largest(self) -> float:
        """The largest factor by which a step may grow: a case with its own may well know that none may be larger."""
        return 1.0 if self.case.step or is_narrow(self.program) else LARGEST_FACTOR

    def _step(self, x: NDArray[np.float32]) -> float:
        return typical_step(x, self.case.step or (_NARROW_STEP if is_narrow(self.program) else None))

    def _rng(self, param: Param, purpose: str) -> Generator:
        return generator(self.settings.seed, self.case.id, purpose, param.spec.name)
