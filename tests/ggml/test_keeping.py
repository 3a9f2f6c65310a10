"""Seeds share what is built for a case, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from gradcheck.bindings.devices import Device
from gradcheck.model.case import Case
from gradcheck.model.job import Job, Settings
from gradcheck.modes import MODES
from gradcheck.numerics.sampling import sample_inputs
from gradcheck.worker.equipment import Equipment
from gradcheck.worker.keeping import Keeper, KeepingDevice
from gradcheck.worker.perform import perform
from tests.builders import make_case

CASES = [
    make_case("out = silu(a)", a=(5, 3, 1, 1)),
    make_case("out = mul(add(a, b), scale(a, 2.0))", a=(5, 3, 1, 1), b=(5, 1, 1, 1)),
    make_case("out = soft_max(cont(transpose(a)))", a=(7, 3, 2, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.graph)
@pytest.mark.parametrize("alloc", ["distinct", "all"])
def test_a_seed_among_others_gives_what_it_gives_alone(cpu: Device, case: Case, alloc: str) -> None:
    equipment = Equipment(MODES, lambda _name, _threads: cpu, lambda: pytest.fail("not asked for"))
    settings = Settings(alloc=alloc)
    together = perform(Job(0, "grad", case, "CPU", replace(settings, seeds=4)), equipment)
    assert together.trials is not None
    for trial in together.trials.runs:
        alone = perform(Job(0, "grad", case, "CPU", replace(settings, seed=trial.seed)), equipment)
        values = tuple(metric.beyond for metric in alone.metrics)
        assert (trial.status, trial.reason) == (alone.status, alone.reason)
        np.testing.assert_array_equal(trial.values, values)


def test_what_was_freed_is_opened_again_and_what_is_in_use_is_not(cpu: Device) -> None:
    device, case = KeepingDevice(cpu), CASES[0]
    first, second = device.open(case), device.open(case)
    first.load(sample_inputs(case, 0))
    second.load(sample_inputs(case, 1))
    assert not np.array_equal(first.forward(), second.forward())
    first.free()
    first.free()
    third, fourth = device.open(case), device.open(case)
    # It still holds what was loaded into the first, and the fourth is a new one.
    np.testing.assert_array_equal(third.stored("a"), sample_inputs(case, 0)["a"].astype(np.float32))
    with pytest.raises(KeyError):
        fourth.stored("a")
    for program in (second, third, fourth):
        program.free()
    device.forget()


def test_a_batch_that_is_used_again_holds_the_new_values(cpu: Device) -> None:
    device, case = KeepingDevice(cpu), CASES[1]
    outputs = []
    for seed in (0, 1):
        values = sample_inputs(case, seed)
        batch = device.batch(case, values, 4)
        x = values["b"].astype(np.float32).reshape(1, -1)
        outputs.append(batch.evaluate("b", None, x).copy())
        batch.free()
        program = cpu.open(case)
        program.load(values)
        np.testing.assert_array_equal(outputs[-1][0], program.forward().astype(np.float32).ravel())
        program.free()
    assert not np.array_equal(outputs[0], outputs[1])
    device.forget()


def test_other_threads_and_names_are_other_devices(cpu: Device) -> None:
    asked: list[tuple[str, int]] = []

    def opened(name: str, threads: int) -> Device:
        asked.append((name, threads))
        return cpu

    keeper = Keeper(opened)
    one = keeper.device("CPU", 1)
    assert keeper.device("CPU", 1) is one
    assert keeper.device("CPU", 2) is not one
    assert asked == [("CPU", 1), ("CPU", 2)]
