"""The devices of ggml, and what they open."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import NDArray

from gradcheck.bindings.backward import build_backward
from gradcheck.bindings.batch import Batch
from gradcheck.bindings.callbacks import OPS as CALLBACK_OPS
from gradcheck.bindings.describe import describe
from gradcheck.bindings.gallocr import GallocrProgram
from gradcheck.bindings.graph import Build, build, build_copies
from gradcheck.bindings.library import Library, load
from gradcheck.bindings.library import library_info as local_info
from gradcheck.bindings.program import Program
from gradcheck.bindings.rpc import connect, server_info
from gradcheck.bindings.sched import ScheduledProgram
from gradcheck.bindings.tensor import Tensor
from gradcheck.bindings.timed import TimedProgram
from gradcheck.model.case import Case
from gradcheck.model.errors import LibraryError, OutOfMemory, Unsupported, UsageError
from gradcheck.model.graph import Description
from gradcheck.model.nearest import did_you_mean
from gradcheck.model.run import LibraryInfo
from gradcheck.model.server import Server, is_server, parse_server

T = TypeVar("T")

#: They compute nothing, so no device can refuse them.
_NO_WORK = frozenset({"NONE"})


class Device:
    """A device with its backend (its queue of work), which lives until `close`.

    name: what the device is called here, where that is not ggml's own name for it
    twin: a device of this machine that takes the same ops: ggml's RPC says yes to everything, and what the far device
        cannot compute ends the server
    """

    def __init__(self, library: Library, handle: Any, threads: int, name: str = "", twin: Any = None) -> None:
        ggml = library.ggml
        self.library = library
        self.handle = handle
        self._threads = threads
        self._twin = twin
        self._cpu: Device | None = None
        self._name: str = name or ggml.ggml_backend_dev_name(handle).decode()
        self.backend = ggml.ggml_backend_dev_init(handle, None)
        if not self.backend:
            raise LibraryError(f"ggml cannot start the device {self._name}")
        _set_threads(ggml, handle, self.backend, threads)

    @property
    def name(self) -> str:
        """The name of the device, as -b takes it."""
        return self._name

    def open(self, case: Case, *, backward: bool = False) -> Program:
        """Build, check support for every node, allocate. Raises Unsupported, InvalidCase or NoRoom."""
        return self._place(self._build(case, backward), lambda made: Program(self, case, made))

    def open_scheduled(self, case: Case, *, backward: bool = False) -> ScheduledProgram:
        """The case through ggml's scheduler: on this device, and on the CPU what this device does not take.

        Raises Unsupported for a node that neither takes, InvalidCase or OutOfMemory.
        """
        fallback = self._fallback()
        made = self._build(case, backward)
        return self._place(made, lambda made: ScheduledProgram(self, fallback, case, made), fallback)

    def open_allocated(
        self, case: Case, alloc: str, *, accumulate: bool = False
    ) -> Program | GallocrProgram | ScheduledProgram:
        """Both directions with memory of their own for all tensors (distinct), from gallocr, or from ggml's sched.

        accumulate: gradients are added to what `load_accumulators` says. Raises as `open` and `open_scheduled` do.
        """
        made = build_backward(self.library, case, accumulate=accumulate)
        if alloc == "sched":
            fallback = self._fallback()
            return self._place(made, lambda made: ScheduledProgram(self, fallback, case, made), fallback)
        if alloc == "gallocr":
            return self._place(made, lambda made: GallocrProgram(self, case, made))
        return self._place(made, lambda made: Program(self, case, made))

    def open_timed(self, case: Case, *, backward: bool = False) -> TimedProgram:
        """The same for timing. Raises as `open` does."""
        return self._place(self._build(case, backward), lambda made: TimedProgram(self, case, made))

    def batch(self, case: Case, values: Mapping[str, NDArray[Any]], copies: int) -> Batch:
        """`copies` forward graphs that hold `values`. Raises as `open` does."""
        if copies < 1:
            raise ValueError(f"a batch of {copies} copies")
        return self._place(build_copies(self.library, case, copies), lambda made: Batch(self, made, values))

    def describe(self, case: Case, *, backward: bool = False) -> Description:
        """The graph as data, without allocating. Raises as `open` does."""
        made = self._build(case, backward)
        try:
            return describe(made)
        finally:
            made.free()

    def check(self, case: Case, *, backward: bool = False) -> None:
        """Build and ask support for every node, without allocating. Raises as `open` does."""
        made = self._build(case, backward)
        try:
            self._demand_support(made)
        finally:
            made.free()

    def compute(self, graph: Any) -> None:
        """Compute a graph and wait for it. Raises OutOfMemory and LibraryError by ggml's status."""
        ggml = self.library.ggml
        status = ggml.ggml_backend_graph_compute(self.backend, graph)
        if status == ggml.GGML_STATUS_SUCCESS:
            return
        if status == ggml.GGML_STATUS_ALLOC_FAILED:
            raise OutOfMemory(f"{self._name} has no memory for what the graph needs while it is computed")
        said = ggml.ggml_status_to_string(status).decode()
        raise LibraryError(f"{self._name} could not compute the graph: {said}")

    def takes(self, node: Tensor) -> bool:
        """Whether the device can compute a node."""
        ggml = self.library.ggml
        if self._twin is not None and not ggml.ggml_backend_dev_supports_op(self._twin, node.pointer):
            return False
        return bool(ggml.ggml_backend_supports_op(self.backend, node.pointer))

    def close(self) -> None:
        """Free the backend; harmless when repeated."""
        if self._cpu:
            self._cpu.close()
        backend, self.backend = self.backend, None
        if backend:
            self.library.ggml.ggml_backend_free(backend)

    def _build(self, case: Case, backward: bool) -> Build:
        return build_backward(self.library, case) if backward else build(self.library, case)

    def _place(self, made: Build, place: Callable[[Build], T], fallback: "Device | None" = None) -> T:
        """What `place` makes of a graph that is supported; the graph is freed where it is not, or cannot be placed."""
        try:
            self._demand_support(made, fallback)
            return place(made)
        except BaseException:
            made.free()
            raise

    def _fallback(self) -> "Device":
        """The CPU, which ggml's scheduler demands as the last device; this one where it is the CPU."""
        ggml, cpu = self.library.ggml, self.library.ggml.GGML_BACKEND_DEVICE_TYPE_CPU
        if ggml.ggml_backend_dev_type(self.handle) == cpu:
            return self
        if self._cpu is None:
            handle = ggml.ggml_backend_dev_by_type(cpu)
            if not handle:
                raise LibraryError("ggml's scheduler needs a CPU device, and this ggml has none")
            self._cpu = Device(self.library, handle, self._threads)
        return self._cpu

    def _demand_support(self, made: Build, fallback: "Device | None" = None) -> None:
        takers = [self] if fallback is None or fallback is self else [self, fallback]
        # The copies of a batch are alike, and a backward graph begins with the forward one.
        for node in made.first_nodes(made.backward or made.forward):
            if node.op in CALLBACK_OPS and is_server(self._name):
                # ggml's RPC says yes to everything, and a server would jump to an address of this process.
                raise Unsupported(f"{self._name} cannot call back into this process, as {node.op} does")
            if node.op not in _NO_WORK and not any(one.takes(node) for one in takers):
                names = " nor ".join(one.name for one in takers)
                refusal = f"neither {names} takes" if takers[1:] else f"{names} does not take"
                raise Unsupported(f"{refusal} {_signature(self.library, node)}")


def open_device(name: str, threads: int = 1, library: Library | None = None) -> Device:
    """The device that ggml calls `name` (in any case), or that an RPC server has.

    Raises UsageError with the nearest name, LibraryError where the server does not answer.
    """
    library = library or load()
    handles = {library.ggml.ggml_backend_dev_name(d).decode(): d for d in library.devices()}
    by_name = {known.lower(): handle for known, handle in handles.items()}
    if is_server(name):
        server = parse_server(name)
        twin = by_name.get(server.serves.lower())
        return Device(library, connect(library, server), threads, name=str(server), twin=twin)
    if name.lower() in by_name:
        return Device(library, by_name[name.lower()], threads)
    raise UsageError(f"this ggml has no device {name}{did_you_mean(name, handles)}; it has {', '.join(handles)}")


def library_info(servers: Sequence[Server] = ()) -> LibraryInfo:
    """The loaded ggml with its devices and those of RPC servers. Raises LibraryError where one does not answer."""
    info = local_info()
    return replace(info, devices=(*info.devices, *map(server_info, servers)))


def _set_threads(ggml: Any, handle: Any, backend: Any, threads: int) -> None:
    registry = ggml.ggml_backend_dev_backend_reg(handle)
    found = ggml.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
    if found:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)(found)(backend, threads)


def _signature(library: Library, node: Tensor) -> str:
    sources = [Tensor(library, source) for source in node.sources if source is not None]
    shown = f"{node.op}({', '.join(map(str, sources))})"
    types = {source.type for source in sources}
    return shown if node.type in types else f"{shown} to {node}"


__all__ = ["Device", "library_info", "open_device"]
