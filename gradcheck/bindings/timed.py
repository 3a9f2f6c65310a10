"""A case's graph for timing: memory that nobody looks after, and parts of it over and over in one ggml graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.graph import Build
from gradcheck.bindings.memory import Buffer, lay_out, place_views
from gradcheck.bindings.program import VIEW_OPS, encode_input
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case, Shape
from gradcheck.model.errors import LibraryError, OutOfMemory
from gradcheck.model.graph import Cost, Part

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device

Array = NDArray[np.float64]

#: How long a graph of repetitions may get: as long as that of ggml's own test-backend-ops.
MOST_NODES = 8192


class TimedProgram:
    """One case on one device without sentinels, poison and checks: tensors lie side by side as ggml places them."""

    def __init__(self, device: Device, case: Case, build: Build) -> None:
        library = device.library
        self._device, self._case, self._build, self._library = device, case, build, library
        self._repetitions: list[Repetition] = []
        tensors = build.tensors()
        slots, nbytes = lay_out(library, device.handle, tensors, gap=0)
        self._buffer = Buffer(library, device.handle, nbytes)
        try:
            for slot in slots:
                self._buffer.place(slot.tensor.pointer, slot.offset)
            place_views(library, tensors)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        return self._build.ne

    @property
    def cost(self) -> Cost:
        """What one forward computation takes."""
        return self._build.cost

    def load(self, values: Mapping[str, NDArray[Any]], cotangent: Array | None = None) -> None:
        """Write every input, and the gradient of the output where there is a backward graph; compute all once.

        Afterwards every part can be computed by itself: what it reads is there. Raises KeyError or ValueError where
        an input is missing or misshapen.
        """
        for name, tensor in self._build.inputs.items():
            self._write(name, tensor, values[name])
        if self._build.cotangent is not None and cotangent is not None:
            self._write("the cotangent", self._build.cotangent, cotangent)
        self._device.compute(self._build.backward or self._build.forward)

    def repetition(self, part: Part) -> Repetition:
        """A part of the graph, to be computed any number of times in one go; it ends with the program."""
        made = Repetition(self._device, *self._nodes(part))
        self._repetitions.append(made)
        return made

    def free(self) -> None:
        """Give the memory back; harmless when repeated."""
        for repetition in self._repetitions:
            repetition.free()
        self._buffer.free()
        self._build.free()

    def _write(self, name: str, tensor: Tensor, values: NDArray[Any]) -> None:
        self._buffer.write(self._buffer.offset(tensor), encode_input(self._library, name, tensor, values))

    def _nodes(self, part: Part) -> tuple[list[Tensor], Tensor | None]:
        """The nodes of a part and, where it is the whole forward graph, its output."""
        forward = self._build.nodes(self._build.forward)
        if part is Part.OP:
            # `out` can be a view of what was computed; a view repeated would measure nothing.
            return [node for node in forward if computes(node)][-1:], None
        if part is Part.FORWARD:
            return forward, self._build.out
        if self._build.backward is None:
            raise ValueError(f"{self._case.id} was opened without its backward graph")
        known = {node.address for node in forward}
        return [node for node in self._build.nodes(self._build.backward) if node.address not in known], None


class Repetition:
    """Nodes that follow each other in one ggml graph `count` times, all on the same memory.

    An op that writes into an input goes on from what it left there. `out`, where given, is what the nodes were
    expanded from: the graph then knows how often each is used, which ggml asks before it fuses ops.
    """

    def __init__(self, device: Device, nodes: list[Tensor], out: Tensor | None = None) -> None:
        self._device, self._ggml, self._nodes, self._out = device, device.library.ggml, nodes, out
        self.ops = sum(map(computes, nodes))
        self.most = max(1, MOST_NODES // max(len(nodes), 1))
        size = self.most * len(nodes) + 1
        memory = self._ggml.ggml_graph_overhead_custom(size, False)
        self._context = self._ggml.ggml_init(
            self._ggml.ggml_init_params(mem_size=memory, mem_buffer=None, no_alloc=True)
        )
        if not self._context:
            raise OutOfMemory(f"no {memory:,} bytes for a graph of {size} nodes")
        self._graph = self._ggml.ggml_new_graph_custom(self._context, size, False)

    def resize(self, count: int) -> None:
        """Let one call of `compute` compute the nodes `count` times, 1 to `most`. Raises LibraryError."""
        if not 1 <= count <= self.most:
            raise ValueError(f"{count} repetitions, and there is room for {self.most}")
        ggml, graph = self._ggml, self._graph
        ggml.ggml_graph_clear(graph)
        repeats = count
        if self._out is not None:
            ggml.ggml_build_forward_expand(graph, self._out.pointer)
            repeats -= 1
        for _ in range(repeats):
            for node in self._nodes:
                ggml.ggml_graph_add_node(graph, node.pointer)
        length, wanted = ggml.ggml_graph_n_nodes(graph), count * len(self._nodes)
        if length != wanted:
            # Times would be divided by a number of computations that never took place.
            raise LibraryError(f"ggml made a graph of {length} nodes where {wanted} were to be repeated")

    def compute(self) -> None:
        """Compute the nodes as often as `resize` said, without reading anything."""
        self._device.compute(self._graph)

    def free(self) -> None:
        """Free the graph; harmless when repeated."""
        context, self._context = self._context, None
        if context:
            self._ggml.ggml_free(context)


def computes(node: Tensor) -> bool:
    """Whether a node does any work: views look at memory in another way, and empty tensors have none."""
    return node.op not in VIEW_OPS and 0 not in node.ne
