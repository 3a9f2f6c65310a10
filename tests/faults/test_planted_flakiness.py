"""A gradient that is wrong for some values only: many seeds find it where one does not, and say how to repeat it."""

import shlex
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from gradcheck.flakiness import assess
from gradcheck.flakiness.proportions import clopper_pearson
from gradcheck.model.job import Job, Settings
from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.modes.bench import Array, Device
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.text import render_text
from gradcheck.reports.view import View
from gradcheck.runner.verdict import judge
from gradcheck.worker.equipment import Equipment
from gradcheck.worker.perform import perform
from tests.builders import make_case
from tests.faults.faulty import FaultyDevice, changed
from tests.unit.test_reports import info

CASE = make_case("out = silu(a)", a=(4, 1, 1, 1))
SEEDS = 40


def wrong_in_a_range(g: Array) -> Array:
    """A kernel with a slip in one branch: values of the gradient from 0.75 to 0.8 come out doubled."""
    return np.where((g > 0.75) & (g < 0.8), 2 * g, g)


def check(target: Device | FaultyDevice, settings: Settings) -> Result:
    equipment = Equipment(MODES, lambda _name, _threads: cast(Device, target), lambda: pytest.fail("not asked for"))
    job = Job(0, "grad", CASE, "CPU", settings)
    return judge(job, perform(job, equipment), 0.1)


@pytest.fixture
def slip(cpu: Device) -> FaultyDevice:
    return FaultyDevice(cpu, gradient=changed("a", wrong_in_a_range))


def failing(target: FaultyDevice) -> list[int]:
    """The seeds that fail, run one by one."""
    return [seed for seed in range(SEEDS) if check(target, Settings(seed=seed)).status is Status.FAIL]


def test_without_the_fault_every_seed_passes(cpu: Device) -> None:
    result = check(cpu, Settings(seeds=SEEDS))
    assert result.status is Status.PASS, result.outcome.reason
    (rate,) = assess([result]).cases
    assert (rate.runs, rate.failed, rate.low) == (SEEDS, 0, 0.0)
    assert rate.margins[0].of_limit < 0.5


def test_a_fault_for_some_values_is_found_by_many_seeds_and_not_by_one(slip: FaultyDevice) -> None:
    assert check(slip, Settings()).status is Status.PASS
    wrong = failing(slip)
    assert 0 < len(wrong) < SEEDS // 2

    result = check(slip, Settings(seeds=SEEDS))
    assert result.status is Status.FAIL
    assert result.outcome.evidence
    trials = result.outcome.trials
    assert trials is not None
    # A seed gives the same among others as by itself.
    assert [trial.seed for trial in trials.runs if trial.status is Status.FAIL] == wrong
    assert f"{len(wrong)} of {SEEDS} seeds failed, the worst is {trials.worst}" in result.outcome.reason
    (rate,) = assess([result]).cases
    assert (rate.low, rate.high) == clopper_pearson(len(wrong), SEEDS)
    assert rate.margins[0].of_limit > 1


def test_the_command_that_repeats_it_does(slip: FaultyDevice) -> None:
    result = check(slip, Settings(seeds=SEEDS))
    told = replace(info(), settings=Settings(seeds=SEEDS))
    words = shlex.split(repeat_command(told, result))
    assert "--seeds" not in words
    again = check(slip, Settings(seed=int(words[words.index("--seed") + 1])))
    assert again.status is Status.FAIL
    assert again.outcome.metrics == result.outcome.metrics
    assert again.outcome.evidence == result.outcome.evidence
    text = render_text(Run(told, (result,), 1.0, flakiness=assess([result])), View())
    assert f"{', '.join(map(str, failing(slip)))} fail" in text
