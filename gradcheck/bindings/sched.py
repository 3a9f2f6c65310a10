"""A case's graph run as an application runs one: through ggml's scheduler, with the CPU for what the target lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import Bytes, epsilon, is_packed
from gradcheck.bindings.graph import MAX_NODES, Build
from gradcheck.bindings.memory import POISON, Buffer, lay_out, tensor_values
from gradcheck.bindings.program import VIEW_OPS, encode_input, narrowest_epsilon, written_inputs
from gradcheck.bindings.scheduler import Scheduler
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case, Shape
from gradcheck.model.result import Placement

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device

Array = NDArray[np.float64]


class ScheduledProgram:
    """One case through ggml_backend_sched, in one graph for both directions: the target first, the CPU last.

    Where inputs lie decides where ops run, so it follows what applications do. Floats and quantised values are
    their weights and states: they lie in a buffer of the target with the usage WEIGHTS, and so does the
    cotangent. Whole numbers (indices, positions, labels) come with each batch: they are marked as inputs, which
    the scheduler keeps in the CPU's memory and copies; where a case has no other inputs, they count as weights.

    All other memory is the scheduler's and passes from tensor to tensor, so nothing can be said of writes outside
    of one. It is filled with NaN before each run: an element that nothing wrote is seen.
    """

    def __init__(self, target: Device, fallback: Device, case: Case, build: Build) -> None:
        self._library, self._case, self._build = target.library, case, build
        self._graph = build.backward or _inference_graph(build)
        self._raw: dict[int, Bytes] = {}
        self._changed: list[str] = []
        self._written = written_inputs(build, self._graph) | {i.name for i in case.inputs if i.written}
        devices = [target] if target is fallback else [target, fallback]
        self._weights = _weights(build, self._graph, devices)
        slots, nbytes = lay_out(self._library, target.handle, list(self._weights.values()))
        self._buffer = Buffer(self._library, target.handle, nbytes)
        self._scheduler: Scheduler | None = None
        try:
            for slot in slots:
                self._buffer.place(slot.tensor.pointer, slot.offset)
            self._mark()
            self._scheduler = Scheduler(devices, nodes=len(build.tensors()))
            self._scheduler.allocate(self._graph)
            self._scratch = self._scheduled_buffers()
            self.placement = self._placement(self._scheduler, fallback)
        except BaseException:
            self._free_memory()
            raise

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        return self._build.ne

    @property
    def narrowest_eps(self) -> float:
        """The machine epsilon of the narrowest float type in the forward graph."""
        return narrowest_epsilon(self._build)

    def load(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Convert every input. Raises KeyError or ValueError where one is missing or misshapen."""
        for name, tensor in self._build.inputs.items():
            self._raw[tensor.address] = encode_input(self._library, name, tensor, values[name])
        cotangent = self._build.cotangent
        if cotangent is not None:
            zeros = np.zeros(tuple(reversed(cotangent.ne)))
            self._raw[cotangent.address] = encode_input(self._library, "the cotangent", cotangent, zeros)
        self._changed.clear()

    def stored(self, name: str) -> Array:
        """An input as the device holds it after conversion to its type, in float64."""
        tensor = self._build.inputs[name]
        return tensor_values(self._library, tensor, self._raw[tensor.address])

    def packed(self, name: str) -> Bytes | None:
        """The bytes of an input whose type stores elements in blocks, as they were loaded; None for any other."""
        tensor = self._build.inputs[name]
        return self._raw[tensor.address] if is_packed(self._library, tensor.type) else None

    def forward(self) -> Array:
        """Compute the graph and read the whole output, in float64."""
        self.compute()
        return self._values(self._build.out)

    def backward(self, cotangent: Array) -> dict[str, Array | None]:
        """J^T v for each param by name; None where ggml made no gradient for it."""
        target = self._build.cotangent
        if target is None:
            raise ValueError(f"{self._case.id} was opened without its backward graph")
        self._raw[target.address] = encode_input(self._library, "the cotangent", target, cotangent)
        self.compute()
        return {
            name: None if gradient is None else self._values(gradient)
            for name, gradient in self._build.gradients.items()
        }

    def compute(self) -> None:
        """Write the inputs, whose memory the last run may have used, and compute the graph."""
        assert self._scheduler is not None
        for buffer in self._scratch:
            self._library.ggml.ggml_backend_buffer_clear(buffer, POISON)
        for tensor in (*self._build.inputs.values(), self._build.cotangent):
            # What no node reads has no memory.
            if tensor is not None and tensor.pointer.contents.buffer:
                self._write(tensor, self._raw[tensor.address])
        self._scheduler.compute(self._graph)
        self._check_weights()

    def overwrites(self) -> list[str]:
        """Nothing: the scheduler leaves no gaps between tensors that could be looked at."""
        return []

    def changed_inputs(self) -> list[str]:
        """Names of inputs in memory of their own that were changed since the last `load`, as for other programs."""
        return list(self._changed)

    def free(self) -> None:
        """Give the memory back; harmless when repeated."""
        self._free_memory()
        self._build.free()

    def _mark(self) -> None:
        """Tell ggml what the weights are, and which results must outlive the computation."""
        ggml = self._library.ggml
        ggml.ggml_backend_buffer_set_usage(self._buffer.handle, ggml.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
        for tensor in self._weights.values():
            tensor.pointer.contents.flags &= ~ggml.GGML_TENSOR_FLAG_INPUT
        for result in (self._build.out, *self._build.gradients.values()):
            if result is not None:
                ggml.ggml_set_output(result.pointer)
                if result.is_view:
                    ggml.ggml_set_output(result.pointer.contents.view_src)

    def _scheduled_buffers(self) -> list[int]:
        """The buffers in which the scheduler has placed tensors."""
        found = {tensor.pointer.contents.buffer for tensor in self._build.tensors()}
        return [buffer for buffer in found if buffer and buffer != self._buffer.handle]

    def _placement(self, scheduler: Scheduler, fallback: Device) -> Placement:
        computing = [node for node in self._build.nodes(self._graph) if node.op not in VIEW_OPS]
        return Placement(
            nodes=tuple((node.op, scheduler.device_of(node).name) for node in computing),
            splits=scheduler.splits,
            fallback=fallback.name,
        )

    def _check_weights(self) -> None:
        for name, tensor in self._weights.items():
            if name in self._written or name in self._changed or name not in self._build.inputs:
                continue
            if not np.array_equal(self._read(tensor), self._raw[tensor.address]):
                self._changed.append(name)

    def _values(self, tensor: Tensor) -> Array:
        return tensor_values(self._library, tensor, self._read(tensor))

    def _read(self, tensor: Tensor) -> Bytes:
        raw = np.empty(0 if 0 in tensor.ne else tensor.nbytes, dtype=np.uint8)
        if raw.size:
            self._library.ggml.ggml_backend_tensor_get(tensor.pointer, raw.ctypes.data, 0, raw.size)
        return raw

    def _write(self, tensor: Tensor, raw: Bytes) -> None:
        if raw.size:
            raw = np.ascontiguousarray(raw)
            self._library.ggml.ggml_backend_tensor_set(tensor.pointer, raw.ctypes.data, 0, raw.size)

    def _free_memory(self) -> None:
        if self._scheduler is not None:
            self._scheduler.free()
        self._scratch = []
        self._buffer.free()


def _inference_graph(build: Build) -> Any:
    """The forward graph as inference has it: nothing is a param, which would be a node of the graph itself."""
    ggml = build.library.ggml
    for tensor in build.inputs.values():
        tensor.pointer.contents.flags &= ~ggml.GGML_TENSOR_FLAG_PARAM
    graph = ggml.ggml_new_graph_custom(build.context, MAX_NODES, False)
    ggml.ggml_build_forward_expand(graph, build.out.pointer)
    return graph


def _weights(build: Build, graph: Any, devices: Sequence[Device]) -> dict[str, Tensor]:
    """What lies in the target's memory, by name: all but whole numbers, if there is anything else.

    ggml aborts where a tensor that has memory is viewed, or written into, by an op that no device takes which
    reaches that memory. Such an input is left to the scheduler.
    """
    target, nodes = devices[0], build.nodes(graph)
    ggml = target.library.ggml
    kind = ggml.ggml_backend_dev_buffer_type(target.handle)
    reaching = [device.backend for device in devices if ggml.ggml_backend_supports_buft(device.backend, kind)]

    def holds(tensor: Tensor) -> bool:
        users = [tensor, *(node for node in nodes if node.is_view and node.root == tensor.address)]
        return all(any(ggml.ggml_backend_supports_op(backend, u.pointer) for backend in reaching) for u in users)

    floats = {name: tensor for name, tensor in build.inputs.items() if epsilon(tensor.type) is not None}
    chosen = {name: tensor for name, tensor in (floats or build.inputs).items() if holds(tensor)}
    return chosen if build.cotangent is None else {**chosen, "the cotangent": build.cotangent}
