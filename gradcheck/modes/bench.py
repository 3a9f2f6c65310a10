"""What the worker hands to a mode: devices that open programs. Modes know ggml through these alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case, Shape
from gradcheck.model.errors import Unsupported
from gradcheck.model.graph import Cost, Description, Part
from gradcheck.model.job import Settings
from gradcheck.model.result import Placement
from gradcheck.numerics.timing import Repeatable

Array = NDArray[np.float64]
Values = Mapping[str, NDArray[Any]]


class Program(Protocol):
    """A case's graph, built and allocated on a device. Arrays have NumPy's order (ne reversed)."""

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""

    @property
    def narrowest_eps(self) -> float:
        """The machine epsilon of the narrowest float type in the graph (a quantised type counts as its scale)."""

    def load(self, values: Values) -> None:
        """Convert and write every input; a flat array is repeated along a larger tensor."""

    def stored(self, name: str) -> Array:
        """An input as the device holds it after conversion to its type, in float64."""

    def packed(self, name: str) -> NDArray[np.uint8] | None:
        """The bytes of an input whose type stores elements in blocks, as they were loaded; None for any other."""

    def forward(self) -> Array:
        """Compute the forward graph and read the whole output, in float64."""

    def backward(self, cotangent: Array) -> dict[str, Array | None]:
        """J^T v for each param by name; None where ggml made no gradient for it. Computes forward too.

        A gradient whose shape is not the param's comes back with the shape that it has.
        """

    def overwrites(self) -> list[str]:
        """Names of tensors behind whose end something was written since the last `load`."""

    def changed_inputs(self) -> list[str]:
        """Names of inputs that computing changed since the last `load`, in-place ops and declared ones aside."""

    def free(self) -> None:
        """Give the memory back."""


class ScheduledProgram(Program, Protocol):
    """A case's graph that ggml's scheduler runs, on the target and, for what that lacks, on the CPU."""

    @property
    def placement(self) -> Placement:
        """Where every node runs."""


class AllocatedProgram(Program, Protocol):
    """A case's graph for both directions, whose memory was given out in a chosen way."""

    def load_accumulators(self, values: Values) -> None:
        """Set what the gradient accumulators of params hold before each `backward`; `load` sets them to 0.

        Gradients are then added to that. No effect where the program was opened without accumulators.
        """


class TimedProgram(Protocol):
    """A case's graph that is computed for its time alone: nothing is poisoned, checked or read."""

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""

    @property
    def cost(self) -> Cost:
        """What one forward computation takes."""

    def load(self, values: Values, cotangent: Array | None = None) -> None:
        """Write every input, and the gradient of the output where there is a backward graph; compute all once."""

    def repetition(self, part: Part) -> Repeatable:
        """A part of the graph, to be computed any number of times in one go; it ends with the program."""

    def free(self) -> None:
        """Give the memory back."""


class Batch(Protocol):
    """Several copies of a case's forward graph in one ggml graph, all holding the same inputs."""

    @property
    def copies(self) -> int:
        """How many moves one call of `evaluate` takes at most."""

    def evaluate(self, name: str, elements: NDArray[np.int64] | None, x: NDArray[np.float32]) -> NDArray[Any]:
        """Outputs after setting some elements of an input, other ones in each copy.

        elements: (n, k) flat indices (C order of the NumPy shape) into input `name`, a row for each of n copies;
            None for all elements in their order
        x: (n, k), the values they take; afterwards the base values stand there again
        Returns an (n, number of output elements) array, valid until the next call.
        """

    def load(self, values: Values) -> None:
        """Put other base values into every copy."""

    def free(self) -> None:
        """Give the memory back."""


class Device(Protocol):
    """A device that runs graphs."""

    @property
    def name(self) -> str:
        """Ggml's name of the device: CPU, CUDA0, Vulkan0..."""

    def open(self, case: Case, *, backward: bool = False) -> Program:
        """Build, check support for every node, allocate. Raises Unsupported, InvalidCase or NoRoom."""

    def open_scheduled(self, case: Case, *, backward: bool = False) -> ScheduledProgram:
        """The same through ggml's scheduler. Raises Unsupported for what the CPU does not take either."""

    def open_allocated(self, case: Case, alloc: str, *, accumulate: bool = False) -> AllocatedProgram:
        """Both directions; alloc is one of ALLOCATIONS. Raises as `open` and `open_scheduled` do.

        accumulate: the params have gradient accumulators, as in training over micro-batches
        """

    def open_timed(self, case: Case, *, backward: bool = False) -> TimedProgram:
        """The same for timing. Raises as `open` does."""

    def batch(self, case: Case, values: Values, copies: int) -> Batch:
        """`copies` forward graphs that hold `values`."""

    def check(self, case: Case, *, backward: bool = False) -> None:
        """Build and ask support for every node, without allocating. Raises as `open` does."""

    def describe(self, case: Case, *, backward: bool = False) -> Description:
        """The graph as data, without allocating. Raises as `open` does."""


def _no_other_threads(threads: int) -> Device:
    raise Unsupported(f"the target cannot be had with {threads} threads")


@dataclass(frozen=True)
class Bench:
    """Everything that a mode may use. `clock` gives seconds, `target_with` the target with that many CPU threads."""

    target: Device
    reference: Callable[[], Device]
    settings: Settings
    clock: Callable[[], float]
    target_with: Callable[[int], Device] = _no_other_threads
