"""A case's graph in memory that is used again and again: ggml's graph allocator, as applications have it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from gradcheck.bindings.graph import Build
from gradcheck.bindings.library import Library
from gradcheck.bindings.memory import demand_device_room
from gradcheck.bindings.shared import SharedMemoryProgram
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case
from gradcheck.model.errors import LibraryError, OutOfMemory

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device


class GallocrProgram(SharedMemoryProgram):
    """One case through ggml_gallocr, in one graph for both directions, on one device.

    Inputs, the cotangent and the accumulators lie in the allocator's memory too: after its last use a tensor's
    memory goes to the next one, and an op that can work in place gets the memory of its source, be that an input.
    So a kernel that is right only where its output and its source lie apart is seen.
    """

    def __init__(self, device: Device, case: Case, build: Build) -> None:
        super().__init__(device.library, case, build)
        self._device = device
        self._protect_results()
        for tensor in self._given():
            # Such tensors get their memory first, so that none is given to another one before it is read.
            self._library.ggml.ggml_set_input(tensor.pointer)
        self._allocator = Allocator(self._library, device.handle)
        try:
            self._allocator.allocate(self._graph)
            # Before that no tensor has a buffer.
            self._scratch = list(self._buffers())
        except BaseException:
            self._free_memory()
            raise
        self._kept = self._alone()

    @property
    def nbytes(self) -> int:
        """The size of the memory that all tensors share."""
        return self._allocator.nbytes

    def _execute(self) -> None:
        self._device.compute(self._graph)

    def _alone(self) -> dict[str, Tensor]:
        """The inputs that are only read and whose memory no other tensor gets."""
        owners = [t for t in self._build.tensors() if not t.is_view and t.pointer.contents.buffer]
        spans = [(_span(tensor), tensor.address) for tensor in owners]
        found = {}
        for name, tensor in self._build.inputs.items():
            if name in self._written or not tensor.pointer.contents.buffer:
                continue
            start, end = _span(tensor)
            if not any(start < other[1] and other[0] < end for other, at in spans if at != tensor.address):
                found[name] = tensor
        return found

    def _free_memory(self) -> None:
        self._scratch, self._kept = [], {}
        self._allocator.free()


class Allocator:
    """ggml_gallocr over the memory of one device."""

    def __init__(self, library: Library, device: Any) -> None:
        self._library, self._device = library, device
        self._kind = library.ggml.ggml_backend_dev_buffer_type(device)
        self._handle = self._new()

    @property
    def nbytes(self) -> int:
        """The size of the memory that was allocated."""
        return int(self._library.ggml.ggml_gallocr_get_buffer_size(self._handle, 0))

    def allocate(self, graph: Any) -> None:
        """Give memory to every tensor of a graph. Raises NoRoom where there is none, OutOfMemory where it fails."""
        demand_device_room(self._library, self._device, self._kind, self._wanted(graph))
        if not self._library.ggml.ggml_gallocr_alloc_graph(self._handle, graph):
            raise OutOfMemory("ggml_gallocr_alloc_graph has no memory for the graph")

    def free(self) -> None:
        """Free the allocator and the memory that it gave; harmless when repeated."""
        handle, self._handle = self._handle, None
        if handle:
            self._library.ggml.ggml_gallocr_free(handle)

    def _wanted(self, graph: Any) -> int:
        """What the graph takes, which only another allocator can tell beforehand: this one would not allocate then."""
        ggml, sizes = self._library.ggml, (ctypes.c_size_t * 1)()
        planning = self._new()
        ggml.ggml_gallocr_reserve_n_size(planning, graph, None, None, sizes)
        ggml.ggml_gallocr_free(planning)
        return int(sizes[0])

    def _new(self) -> Any:
        handle = self._library.ggml.ggml_gallocr_new(self._kind)
        if not handle:
            raise LibraryError("ggml_gallocr_new failed")
        return handle


def _span(tensor: Tensor) -> tuple[int, int]:
    start = int(tensor.pointer.contents.data or 0)
    return start, start + tensor.nbytes
