"""Faults that show in shared memory, with more threads, in a second run or in an accumulator alone: all are told."""

import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.bindings import devices
from gradcheck.bindings.tensor import Tensor, address
from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, NoRoom, Unsupported
from gradcheck.model.job import Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.modes.agreement import Agreement
from gradcheck.modes.bench import Bench, Device
from tests.builders import make_case
from tests.faults.faulty import FaultyDevice, FaultyProgram, GradientFault, changed

CASE = make_case("out = scale(silu(a), 2.0)", a=(50, 20, 5, 1))
ACCUMULATED = replace(CASE, accumulate=True)
ALL = Settings(alloc="all", more_threads=(2,))

Bytes = NDArray[np.uint8]
#: Spoils what a right kernel has computed: gets a node, and the bytes that its memory held before.
Spoiler = Callable[[Tensor, Bytes], None]


@dataclass(frozen=True)
class Kernel:
    """A kernel of ggml that is wrong: `before` it computes a node, or `after`."""

    op: str
    before: Callable[[Tensor], None] = lambda _node: None
    after: Spoiler = lambda _node, _old: None


class WrongKernels(devices.Device):
    """The CPU, which computes node by node, one op of them wrongly."""

    def __init__(self, cpu: devices.Device, kernel: Kernel, threads: int) -> None:
        super().__init__(cpu.library, cpu.handle, threads)
        self._kernel = kernel
        ggml = cpu.library.ggml
        size = ggml.ggml_graph_overhead_custom(1, False)
        self._context = ggml.ggml_init(ggml.ggml_init_params(mem_size=size, mem_buffer=None, no_alloc=True))
        self._single = ggml.ggml_new_graph_custom(self._context, 1, False)

    def compute(self, graph: Any) -> None:
        ggml = self.library.ggml
        for index in range(ggml.ggml_graph_n_nodes(graph)):
            node = Tensor(self.library, ggml.ggml_graph_node(graph, index))
            wrong = node.op == self._kernel.op
            if wrong:
                old = memory(node).copy()
                self._kernel.before(node)
            ggml.ggml_graph_clear(self._single)
            ggml.ggml_graph_add_node(self._single, node.pointer)
            super().compute(self._single)
            if wrong:
                self._kernel.after(node, old)

    def close(self) -> None:
        super().close()
        self.library.ggml.ggml_free(self._context)


def memory(node: Tensor) -> Bytes:
    pointer = ctypes.cast(node.pointer.contents.data, ctypes.POINTER(ctypes.c_uint8))
    return np.ctypeslib.as_array(pointer, (node.nbytes,))


def clears_first(node: Tensor) -> None:
    """A kernel that sets its output to zero and adds to it: right, where no source lies there."""
    if any(source.contents.data == node.pointer.contents.data for source in node.sources if source):
        memory(node)[:] = 0


def half_is_left_out(node: Tensor, old: Bytes) -> None:
    memory(node)[node.nbytes // 2 :] = old[node.nbytes // 2 :]


def overwrites(node: Tensor, _old: Bytes) -> None:
    """A sum in place that forgets what was there."""
    if node.is_view and node.root == address(node.sources[0]):
        ctypes.memmove(node.pointer.contents.data, node.sources[1].contents.data, node.nbytes)


@pytest.fixture
def cpus(cpu: devices.Device) -> "Iterator[Cpus]":
    opened = Cpus(cpu)
    yield opened
    for device in opened.devices:
        device.close()


class Cpus:
    """Runs grad on the CPU, with one thread or two, of which the kernels of either can be wrong."""

    def __init__(self, cpu: devices.Device) -> None:
        self.cpu = cpu
        self.devices: list[devices.Device] = []

    def grad(
        self, case: Case, settings: Settings, kernel: Kernel | None = None, wrong_with_two: Kernel | None = None
    ) -> Outcome:
        target = WrongKernels(self.cpu, kernel, 1) if kernel else devices.open_device("CPU", 1)
        other = WrongKernels(self.cpu, wrong_with_two, 2) if wrong_with_two else devices.open_device("CPU", 2)
        self.devices += [target, other]
        bench = Bench(target, lambda: self.cpu, settings, time.perf_counter, {1: target, 2: other}.__getitem__)
        return MODES["grad"](case, bench)


@pytest.mark.parametrize("case", [CASE, ACCUMULATED], ids=["plain", "accumulated"])
def test_without_a_fault_it_passes(case: Case, cpus: Cpus) -> None:
    outcome = cpus.grad(case, ALL)
    assert (outcome.status, outcome.reason, outcome.notes) == (Status.PASS, "", ())
    assert cpus.grad(case, ALL, Kernel("SILU_BACK")).status is Status.PASS


def test_a_kernel_that_is_wrong_in_shared_memory_is_caught(cpus: Cpus) -> None:
    kernel = Kernel("SILU_BACK", before=clears_first)
    assert cpus.grad(CASE, Settings(), kernel).status is Status.PASS
    outcome = cpus.grad(CASE, Settings(alloc="gallocr"), kernel)
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith("the gradient of a under gallocr is 0 at [")
    assert outcome.reason.endswith(" with memory of its own (5000 of 5000 elements differ)")


@pytest.mark.parametrize("alloc", ["gallocr", "sched"])
def test_the_real_kernel_of_ggml_that_is_wrong_in_shared_memory_is_caught(alloc: str, cpus: Cpus) -> None:
    case = make_case("out = add(soft_max(a), b)", a=(6, 3), b=(6, 3))
    assert cpus.grad(case, Settings()).status is Status.PASS
    outcome = cpus.grad(case, Settings(alloc=alloc))
    if cpus.cpu.library.ggml.ggml_version() != b"0.15.3":
        pytest.skip("whether the kernel works in place is known of ggml 0.15.3 alone")
    assert outcome.reason.startswith(f"the gradient of a under {alloc} is ")


def test_a_share_of_a_thread_that_is_left_out_is_caught(cpus: Cpus) -> None:
    kernel = Kernel("SILU_BACK", after=half_is_left_out)
    outcome = cpus.grad(CASE, Settings(), wrong_with_two=kernel)
    assert outcome.status is Status.PASS
    outcome = cpus.grad(CASE, Settings(more_threads=(2,)), wrong_with_two=kernel)
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith("the gradient of a with 2 threads is nan at [")
    assert outcome.reason.endswith(" with 1 thread (2500 of 5000 elements differ)")


@pytest.mark.parametrize("alloc", ["distinct", "gallocr"])
def test_a_sum_that_forgets_what_was_there_is_caught(alloc: str, cpus: Cpus) -> None:
    kernel = Kernel("ADD", after=overwrites)
    assert cpus.grad(CASE, Settings(alloc=alloc), kernel).status is Status.PASS
    outcome = cpus.grad(ACCUMULATED, Settings(alloc=alloc), kernel)
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith("the gradient of a in an accumulator that held a value is ")
    assert ("and under gallocr in an accumulator that held a value too" in outcome.reason) is (alloc == "gallocr")


class Unsteady:
    """Every pass after the first adds more to one element of a's gradient."""

    def __init__(self, by: float) -> None:
        self._by, self._runs = by, 0

    @property
    def fault(self) -> GradientFault:
        return changed("a", self._changed)

    def _changed(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        wrong = g.copy()
        wrong[0, 1, 2, 3] += self._runs * self._by
        self._runs += 1
        return wrong


def on(target: FaultyDevice, settings: Settings | None = None, case: Case = CASE) -> Outcome:
    device = cast(Device, target)
    return MODES["grad"](case, Bench(device, lambda: device, settings or Settings(), time.perf_counter))


def test_bits_that_differ_from_run_to_run_are_a_note(cpu: devices.Device) -> None:
    outcome = on(FaultyDevice(cpu, gradient=Unsteady(1e-7).fault))
    assert (outcome.status, outcome.reason) == (Status.PASS, "")
    assert outcome.notes == (
        "in a second run 1 of 5000 elements of the gradient of a differ in their bits, by 1e-07 at most",
    )


@pytest.mark.parametrize(("by", "value"), [(0.5, ""), (np.nan, "nan ")])
def test_values_that_differ_from_run_to_run_are_a_failure(by: float, value: str, cpu: devices.Device) -> None:
    outcome = on(FaultyDevice(cpu, gradient=Unsteady(by).fault if by == by else NaN().fault))
    assert outcome.status is Status.FAIL
    assert f"the gradient of a in a second run is {value}" in outcome.reason
    assert "at [3,2,1,0], and " in outcome.reason
    assert "in the first one (1 of 5000 elements differ)" in outcome.reason


class NaN(Unsteady):
    def __init__(self) -> None:
        super().__init__(0.0)

    def _changed(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        wrong = super()._changed(g)
        if self._runs > 1:
            wrong[0, 1, 2, 3] = np.nan
        return wrong


@dataclass(frozen=True)
class Elsewhere(FaultyDevice):
    """A device that is right with memory of its own; what it does otherwise is planted."""

    refusal: Exception | None = None
    behaviour: str = ""

    def open(self, case: Case, *, backward: bool = False) -> Any:
        return self.device.open(case, backward=backward)

    def open_allocated(self, case: Case, alloc: str, *, accumulate: bool = False) -> Any:
        if self.refusal:
            raise self.refusal
        program: Any = FaultyProgram(
            self.device.open_allocated(case, alloc, accumulate=accumulate), self.gradient, self.output
        )
        if self.behaviour:
            setattr(program, self.behaviour, lambda: ["a"])
        return program


GALLOCR = Settings(alloc="gallocr")


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        ({"gradient": changed("a", lambda _: None)}, "the gradient of a under gallocr is missing, and of the shape"),
        (
            {"gradient": changed("a", lambda g: g[..., :-1])},
            "the gradient of a under gallocr is of the shape [49, 20, ",
        ),
        ({"gradient": changed("a", lambda g: g * 1.00002)}, "the gradient of a under gallocr is"),
        ({"output": lambda y: y * 1.00002}, "the output under gallocr is"),
        ({"output": lambda y: np.full_like(y, np.inf)}, "the output under gallocr is inf at [0,0,0,0]"),
        ({"behaviour": "changed_inputs"}, "under gallocr: the input a was changed"),
        ({"behaviour": "overwrites"}, "under gallocr: something wrote behind the end of a"),
        ({"refusal": Aborted("GGML_ASSERT(ok) failed")}, "under gallocr: GGML_ASSERT(ok) failed"),
    ],
)
def test_other_faults_of_other_memory(faulty: dict[str, Any], reason: str, cpu: devices.Device) -> None:
    assert on(Elsewhere(cpu, **faulty)).status is Status.PASS
    outcome = on(Elsewhere(cpu, **faulty), GALLOCR)
    assert outcome.status is Status.FAIL
    assert reason in outcome.reason


def test_rounding_is_a_note_once_for_all_ways(cpu: devices.Device) -> None:
    faulty = Elsewhere(cpu, gradient=changed("a", lambda g: g * (1 + 2.0**-23)))
    outcome = on(faulty, Settings(alloc="all"))
    assert outcome.status is Status.PASS
    (note,) = outcome.notes
    assert note.startswith("under gallocr 5000 of 5000 elements of the gradient of a differ in their bits, by ")
    assert note.endswith(" at most, and under sched too")


@pytest.mark.parametrize("refusal", [Unsupported("no scheduler"), NoRoom("too large")])
def test_what_cannot_be_compared_is_a_note(refusal: Exception, cpu: devices.Device) -> None:
    outcome = on(Elsewhere(cpu, refusal=refusal), GALLOCR)
    assert (outcome.status, outcome.notes) == (Status.PASS, (f"not compared under gallocr: {refusal}",))


def test_a_target_without_other_threads_is_a_note(cpu: devices.Device) -> None:
    outcome = on(FaultyDevice(cpu), Settings(more_threads=(3,)))
    assert outcome.status is Status.PASS
    assert outcome.notes == ("not compared with 3 threads: the target cannot be had with 3 threads",)


def test_a_fault_is_added_to_what_was_found_before() -> None:
    found = Agreement(("it is wrong elsewhere",), ("a note",))
    failed = found.onto(Outcome(Status.FAIL, "maa 1 > 0.001", notes=("first",)))
    assert (failed.reason, failed.notes) == ("maa 1 > 0.001; it is wrong elsewhere", ("first", "a note"))
    assert found.onto(Outcome(Status.VACUOUS, "zero everywhere")).reason == "it is wrong elsewhere"
    assert found.onto(Outcome(Status.PASS)).status is Status.FAIL
    assert Agreement().onto(failed) == failed
