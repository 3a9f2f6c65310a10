"""The NumPy reference as a device: it opens programs that compute a case's forward graph in float64."""

import math
from collections.abc import Mapping
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from gradcheck.language import parse_graph, run_graph
from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Case, Input, Shape
from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.model.room import demand_room
from gradcheck.reference.dtypes import EPSILONS, Array, loaded, type_name
from gradcheck.reference.functions import call, word
from gradcheck.reference.tensor import Tensor, new

#: Each tensor in float64, and as much again for what a rule makes on the way.
_BYTES_PER_ELEMENT = 16


class ReferenceDevice:
    """The device `numpy`: forward graphs of plain types, nothing else."""

    name = "numpy"

    def open(self, case: Case, *, backward: bool = False) -> "ReferenceProgram":
        """The forward graph of a case. Raises Unsupported and InvalidCase."""
        if backward:
            raise Unsupported("the NumPy reference has no backward pass")
        return ReferenceProgram(case)

    def check(self, case: Case, *, backward: bool = False) -> None:
        """Build the graph of a case. Raises Unsupported and InvalidCase."""
        self.open(case, backward=backward)

    def describe(self, *_case: Any, **_options: Any) -> Never:
        """Unsupported: there is no graph of ggml to describe."""
        raise Unsupported("the NumPy reference has no graph of ggml to describe")

    def open_scheduled(self, *_case: Any, **_options: Any) -> Never:
        """Unsupported: ggml schedules for its own devices."""
        raise Unsupported("the NumPy reference is no device that ggml can schedule for")

    def open_allocated(self, *_case: Any, **_options: Any) -> Never:
        """Unsupported: there is no memory of ggml to give out."""
        raise Unsupported("the NumPy reference has no backward pass")

    def open_timed(self, *_case: Any, **_options: Any) -> Never:
        """Unsupported: a reference is not timed."""
        raise Unsupported("the NumPy reference is not timed")

    def batch(self, *_arguments: Any, **_options: Any) -> Never:
        """Unsupported: numeric gradients are for devices."""
        raise Unsupported("the NumPy reference does not compute in batches")


class ReferenceProgram:
    """One forward graph. Every call of `forward` starts from what `load` was given, also after in-place ops."""

    def __init__(self, case: Case) -> None:
        self._inputs = {declared.name: _input(declared) for declared in case.inputs}
        self._stored: dict[str, Array] = {}
        scope = {**dict(case.scope), **self._inputs}
        try:
            made = run_graph(parse_graph(case.graph), scope, call, word)
        except LanguageError as error:
            raise InvalidCase(str(error)) from None
        if not isinstance(made["out"], Tensor):
            raise InvalidCase(f"`out` is {made['out']!r}, not a tensor")
        self._out: Tensor = made["out"]
        self._nodes = _in_order(self._out)
        held = [*self._inputs.values(), *(node for node in self._nodes if node.rule is not None)]
        demand_room(_BYTES_PER_ELEMENT * sum(tensor.elements for tensor in held), "the NumPy reference")
        # A copy of what nothing is written into would only take room.
        self._rewritten = {id(node.memory) for node in self._nodes if node.rule is not None}

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        return self._out.ne

    @property
    def narrowest_eps(self) -> float:
        """The machine epsilon of the narrowest float type in the graph."""
        return max((EPSILONS[node.type] for node in self._nodes if node.type in EPSILONS), default=EPSILONS["f32"])

    def changed_inputs(self) -> list[str]:
        """None: an op that writes into an input is computed on a copy."""
        return []

    def load(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Take every input, as its type holds it. Raises KeyError or ValueError where one is missing or misshapen."""
        for name, tensor in self._inputs.items():
            self._stored[name] = _filled(loaded(tensor.type, values[name]), tensor.shape)

    def stored(self, name: str) -> Array:
        """An input after conversion to its type."""
        return self._stored[name].copy()

    def packed(self, _name: str) -> None:
        """None: it holds values, not bytes."""

    def forward(self) -> Array:
        """Compute the graph and give the whole output."""
        for name, tensor in self._inputs.items():
            stored = self._stored[name].reshape(-1)
            tensor.memory.values = stored.copy() if id(tensor.memory) in self._rewritten else stored
        with np.errstate(all="ignore"):
            for node in self._nodes:
                _compute(node)
        return self._out.array.copy()

    def backward(self, *_cotangent: Any, **_options: Any) -> Never:
        """Unsupported: the reference is forward only."""
        raise Unsupported("the NumPy reference has no backward pass")

    def overwrites(self) -> list[str]:
        """NumPy writes nowhere but into its own arrays."""
        return []

    def free(self) -> None:
        """Drop the graph; harmless when repeated."""
        self._nodes, self._stored, self._inputs = [], {}, {}


def _filled(values: Array, shape: tuple[int, ...]) -> Array:
    """Values in their shape; a flat array is repeated along a larger one."""
    smaller = values.ndim == 1 and 0 < values.size < math.prod(shape)
    return np.resize(values, shape) if smaller else values.reshape(shape)


def _input(declared: Input) -> Tensor:
    return new(type_name(declared.type), declared.ne)


def _compute(node: Tensor) -> None:
    try:
        node.compute()
    except (ValueError, IndexError) as error:
        raise InvalidCase(f"the NumPy reference cannot compute {node}: {error}") from error


def _in_order(out: Tensor) -> list[Tensor]:
    """The tensors that `out` depends on, sources first, from left to right: the order in which ggml computes."""
    done: dict[int, Tensor] = {}
    stack: list[tuple[Tensor, bool]] = [(out, False)]
    while stack:
        tensor, ready = stack.pop()
        if id(tensor) in done:
            continue
        if ready:
            done[id(tensor)] = tensor
            continue
        stack.append((tensor, True))
        stack += [(source, False) for source in reversed(tensor.sources) if source is not None]
    return list(done.values())
