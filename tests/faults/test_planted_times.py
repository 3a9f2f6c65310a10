"""Planted faults of perf, by a clock that a fake device moves: the reported time must tell each of them."""

from dataclasses import dataclass
from typing import cast

import pytest

from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.model.graph import Cost, Part
from gradcheck.model.job import Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.modes.bench import Array, Bench, Device, Values
from tests.builders import make_case

CASE = make_case("out = silu(a)", a=(50, 20, 5, 1))
#: What the parts of the fake graph take, in seconds, and how many ops they have.
TIMES = {Part.OP: 3e-6, Part.FORWARD: 9e-6, Part.BACKWARD: 20e-6}
OPS = {Part.OP: 1, Part.FORWARD: 3, Part.BACKWARD: 2}


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Machine:
    """A device and its clock. slowness, launch_s: faults of the device; share: of the repetitions that are computed."""

    clock: Clock
    slowness: float = 1.0
    launch_s: float = 0.0
    share: float = 1.0
    noise: tuple[float, ...] = (1.0,)
    ops: dict[Part, int] | None = None
    name: str = "FAKE"
    loaded: tuple[Values, Array | None] | None = None
    opened_backward: bool = False
    freed: int = 0

    def open_timed(self, case: Case, *, backward: bool = False) -> "Machine":
        if backward and "ceil" in case.graph:
            raise Unsupported("no backward for CEIL")
        self.opened_backward = backward
        return self

    ne = (50, 20, 5, 1)
    cost = Cost(flops=0, bytes=40_000)

    def load(self, values: Values, cotangent: Array | None = None) -> None:
        self.loaded = values, cotangent

    def repetition(self, part: Part) -> "Work":
        return Work(self, part)

    def free(self) -> None:
        self.freed += 1


@dataclass
class Work:
    machine: Machine
    part: Part
    count: int = 0
    goes: int = 0
    most: int = 8192

    @property
    def ops(self) -> int:
        return (self.machine.ops or OPS)[self.part]

    def resize(self, count: int) -> None:
        self.count = count

    def compute(self) -> None:
        machine = self.machine
        each = TIMES[self.part] * machine.slowness * machine.noise[self.goes % len(machine.noise)]
        machine.clock.now += machine.launch_s + int(self.count * machine.share) * each
        self.goes += 1


def measure(machine: Machine, settings: Settings | None = None, case: Case = CASE) -> tuple[Outcome, dict[str, float]]:
    target = cast(Device, machine)
    outcome = MODES["perf"](case, Bench(target, lambda: target, settings or Settings(), machine.clock))
    return outcome, {metric.name: metric.value for metric in outcome.metrics}


def machine(**faults: object) -> Machine:
    return Machine(Clock(), **faults)  # type: ignore[arg-type]


def test_without_a_fault_the_time_is_right() -> None:
    outcome, metrics = measure(machine())
    assert outcome.status is Status.PASS
    assert metrics["time"] == pytest.approx(TIMES[Part.OP])
    assert metrics["bandwidth"] == pytest.approx(40_000 / TIMES[Part.OP])
    assert "flops" not in metrics
    counts = dict(outcome.counts)
    assert counts["runs"] == counts["samples"] * counts["repetitions"] == len(outcome.samples) * counts["repetitions"]


def test_a_device_twice_as_slow_is_twice_as_slow_in_the_report() -> None:
    assert measure(machine(slowness=2.0))[1]["time"] == pytest.approx(2 * TIMES[Part.OP])


def test_a_device_that_leaves_out_repetitions_shows_less_time() -> None:
    """Nothing but the number of nodes guards against it (see the test of the bindings): the time itself must follow."""
    assert measure(machine(share=0.5))[1]["time"] == pytest.approx(TIMES[Part.OP] / 2, rel=1e-3)


def test_a_slow_launch_is_not_the_op() -> None:
    assert measure(machine(launch_s=60e-6))[1]["time"] == pytest.approx(TIMES[Part.OP], rel=0.02)


def test_a_disturbance_in_one_sample_of_eight_does_not_move_the_median() -> None:
    outcome, metrics = measure(machine(noise=(1.0,) * 7 + (50.0,)))
    assert metrics["time"] == pytest.approx(TIMES[Part.OP])
    assert max(outcome.samples) == pytest.approx(50 * TIMES[Part.OP])


def test_an_unsteady_device_shows_in_the_quartiles() -> None:
    _, metrics = measure(machine(noise=(1.0, 2.0, 3.0)))
    assert metrics["time_q1"] < metrics["time"] < metrics["time_q3"]


def test_a_graph_of_several_ops_has_two_times() -> None:
    outcome, metrics = measure(machine())
    assert metrics["graph_time"] == pytest.approx(TIMES[Part.FORWARD])
    assert dict(outcome.counts)["ops"] == 3
    assert "graph_time that of all" in outcome.notes[0]
    assert "graph_time" not in measure(machine(ops={**OPS, Part.FORWARD: 1}))[1]


def test_backward_is_timed_alone_and_claims_no_rates() -> None:
    device = machine()
    outcome, metrics = measure(device, Settings(backward=True))
    assert metrics["time"] == pytest.approx(TIMES[Part.BACKWARD])
    assert set(metrics) == {"time", "time_q1", "time_q3"}
    assert not {"bytes", "flops"} & set(dict(outcome.counts))
    assert device.opened_backward
    cotangent = device.loaded[1] if device.loaded else None
    assert cotangent is not None
    assert cotangent.shape == (1, 5, 20, 50)
    with pytest.raises(Unsupported, match="CEIL"):
        measure(machine(), Settings(backward=True), make_case("out = ceil(a)", a=(4, 1, 1, 1)))


@pytest.mark.parametrize("backward", [False, True])
def test_what_computes_nothing_has_no_time(backward: bool) -> None:
    device = machine(ops=dict.fromkeys(Part, 0))
    outcome, metrics = measure(device, Settings(backward=backward))
    assert outcome.status is Status.SKIP
    assert "nothing is computed" in outcome.reason
    assert not metrics
    assert device.freed == 1
