"""A case's graph run as an application runs one: through ggml's scheduler, with the CPU for what the target lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcheck.bindings.dtypes import epsilon
from gradcheck.bindings.graph import Build
from gradcheck.bindings.memory import Buffer, lay_out
from gradcheck.bindings.program import VIEW_OPS
from gradcheck.bindings.scheduler import Scheduler
from gradcheck.bindings.shared import SharedMemoryProgram
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case
from gradcheck.model.result import Placement

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device


class ScheduledProgram(SharedMemoryProgram):
    """One case through ggml_backend_sched, in one graph for both directions: the target first, the CPU last.

    Where inputs lie decides where ops run, so it follows what applications do. Floats and quantised values are
    their weights and states: they lie in a buffer of the target with the usage WEIGHTS, and so do the cotangent
    and the accumulators. Whole numbers (indices, positions, labels) come with each batch: they are marked as
    inputs, which the scheduler keeps in the CPU's memory and copies; where a case has no other inputs, they count
    as weights. All other memory is the scheduler's.
    """

    def __init__(self, target: Device, fallback: Device, case: Case, build: Build) -> None:
        super().__init__(target.library, case, build)
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
            self._scratch = [buffer for buffer in self._buffers() if buffer != self._buffer.handle]
            self.placement = self._placement(self._scheduler, fallback)
        except BaseException:
            self._free_memory()
            raise
        unwritten = build.inputs.keys() - self._written
        self._kept = {name: tensor for name, tensor in self._weights.items() if name in unwritten}

    def _execute(self) -> None:
        assert self._scheduler is not None
        self._scheduler.compute(self._graph)

    def _mark(self) -> None:
        """Tell ggml what the weights are, and which results must outlive the computation."""
        ggml = self._library.ggml
        ggml.ggml_backend_buffer_set_usage(self._buffer.handle, ggml.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
        for tensor in self._weights.values():
            tensor.pointer.contents.flags &= ~ggml.GGML_TENSOR_FLAG_INPUT
        self._protect_results()

    def _placement(self, scheduler: Scheduler, fallback: Device) -> Placement:
        computing = [node for node in self._build.nodes(self._graph) if node.op not in VIEW_OPS]
        return Placement(
            nodes=tuple((node.op, scheduler.device_of(node).name) for node in computing),
            splits=scheduler.splits,
            fallback=fallback.name,
        )

    def _free_memory(self) -> None:
        if self._scheduler is not None:
            self._scheduler.free()
        self._scratch = []
        self._buffer.free()


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
    chosen |= {f"the accumulator of {name}": tensor for name, tensor in build.accumulators.items() if holds(tensor)}
    return chosen if build.cotangent is None else {**chosen, "the cotangent": build.cotangent}
