"""ggml's scheduler: which device runs which node of a graph, and in whose memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcheck.bindings.tensor import Tensor
from gradcheck.model.errors import LibraryError, OutOfMemory

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device


class Scheduler:
    """ggml_backend_sched over devices, the first of which is preferred and the last of which is the CPU.

    nodes: how many tensors, leaves included, the graph has at most
    """

    def __init__(self, devices: Sequence[Device], nodes: int) -> None:
        self._ggml = ggml = devices[0].library.ggml
        self._devices = devices
        # ggml-python gives a plain int as what this returns, which cuts pointers in half.
        ggml.ggml_backend_sched_get_tensor_backend.restype = ctypes.c_void_p
        backends = (ctypes.c_void_p * len(devices))(*(device.backend for device in devices))
        # Not in parallel, and big batches of ops may go where the weights are not: as llama.cpp does by default.
        # Tensors and the copies of them have a place each in a table that must not fill up.
        self._handle = ggml.ggml_backend_sched_new(backends, None, len(devices), 2 * nodes + 8, False, True)
        if not self._handle:
            raise LibraryError("ggml_backend_sched_new failed")

    @property
    def splits(self) -> int:
        """Into how many parts, each on one device, the graph was cut."""
        return int(self._ggml.ggml_backend_sched_get_n_splits(self._handle))

    def allocate(self, graph: Any) -> None:
        """Decide where every node runs, and give it memory there. Raises OutOfMemory."""
        if not self._ggml.ggml_backend_sched_alloc_graph(self._handle, graph):
            raise OutOfMemory(f"no memory for the graph on {' and '.join(device.name for device in self._devices)}")

    def device_of(self, node: Tensor) -> Device:
        """Where a node of the allocated graph runs."""
        backend = self._ggml.ggml_backend_sched_get_tensor_backend(self._handle, node.pointer)
        return next(device for device in self._devices if device.backend == backend)

    def compute(self, graph: Any) -> None:
        """Compute the allocated graph and wait for it. Raises OutOfMemory and LibraryError by ggml's status."""
        ggml = self._ggml
        status = ggml.ggml_backend_sched_graph_compute(self._handle, graph)
        if status == ggml.GGML_STATUS_SUCCESS:
            return
        if status == ggml.GGML_STATUS_ALLOC_FAILED:
            raise OutOfMemory("there is no memory for what the graph needs while it is computed")
        raise LibraryError(f"the graph could not be computed: {ggml.ggml_status_to_string(status).decode()}")

    def free(self) -> None:
        """Free the scheduler and the memory that it gave; harmless when repeated."""
        handle, self._handle = self._handle, None
        if handle:
            self._ggml.ggml_backend_sched_free(handle)
