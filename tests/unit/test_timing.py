"""Timing with a clock that only the work itself moves."""

from dataclasses import dataclass, field

import pytest

from gradcheck.numerics.timing import (
    FEWEST_SAMPLES,
    FEWEST_SLOW_SAMPLES,
    GRAPH_S,
    MOST_SAMPLES,
    PATIENCE_S,
    find_count,
    least_count,
    time_work,
)

BUDGET_S = 0.1


@dataclass
class Work:
    """Takes `launch_s` for each go and `each_s` for each time in it; `delays` come once each, in the first goes."""

    each_s: float
    launch_s: float = 0.0
    most: int = 8192
    ops: int = 1
    delays: list[float] = field(default_factory=list)
    now: float = 0.0
    count: int = 0
    goes: int = 0

    def resize(self, count: int) -> None:
        assert 1 <= count <= self.most
        self.count = count

    def compute(self) -> None:
        self.goes += 1
        self.now += self.launch_s + self.count * self.each_s + (self.delays.pop(0) if self.delays else 0.0)

    def clock(self) -> float:
        return self.now


def test_a_launch_much_longer_than_the_work_vanishes() -> None:
    work = Work(each_s=2e-6, launch_s=40e-6)
    timing = time_work(work, work.clock, BUDGET_S)
    assert timing.count * 2e-6 >= 0.9 * GRAPH_S
    assert timing.samples == pytest.approx([2e-6] * len(timing.samples), rel=0.02)


@pytest.mark.parametrize("each_s", [1e-9, 3e-7, 1e-5, 2e-3, 0.02])
def test_samples_fill_the_budget_and_no_more(each_s: float) -> None:
    work = Work(each_s)
    find_count(work, work.clock, BUDGET_S)
    begin, goes = work.now, work.goes
    timing = time_work(work, work.clock, BUDGET_S)
    one_go = timing.count * each_s
    assert len(timing.samples) >= FEWEST_SAMPLES
    assert work.now - begin <= 2 * (max(BUDGET_S, FEWEST_SAMPLES * one_go) + 3 * one_go)
    assert len(timing.samples) <= work.goes - goes


def test_work_of_seconds_is_done_a_few_times_only() -> None:
    work = Work(each_s=4.0)
    timing = time_work(work, work.clock, BUDGET_S)
    assert timing.count == 1
    assert len(timing.samples) == FEWEST_SLOW_SAMPLES
    assert timing.samples == (4.0,) * FEWEST_SLOW_SAMPLES
    assert work.goes <= FEWEST_SLOW_SAMPLES + 1
    assert FEWEST_SLOW_SAMPLES * 4.0 >= PATIENCE_S


def test_a_short_budget_makes_the_goes_shorter() -> None:
    work = Work(each_s=1e-5)
    timing = time_work(work, work.clock, 7e-3)
    assert timing.count * 1e-5 == pytest.approx(1e-3, rel=0.3)


def test_there_is_an_end_to_repetitions_and_samples() -> None:
    work = Work(each_s=0.0, most=50)
    timing = time_work(work, work.clock, BUDGET_S)
    assert timing.count == 50
    assert len(timing.samples) == MOST_SAMPLES


def test_a_disturbed_first_look_does_not_settle_the_count() -> None:
    """Another program on the processor for 30 ms must not pass for work of 30 ms."""
    work = Work(each_s=2e-6, launch_s=40e-6, delays=[0.03, 0.03])
    assert find_count(work, work.clock, BUDGET_S) * 2e-6 >= 0.9 * GRAPH_S


def test_a_launch_that_is_always_long_needs_the_cost() -> None:
    work = Work(each_s=2e-6, launch_s=0.04)
    assert find_count(work, work.clock, BUDGET_S) == 1
    assert find_count(work, work.clock, BUDGET_S, least=1000) == 1000


def test_a_cost_that_misleads_is_bounded_by_the_budget() -> None:
    work = Work(each_s=0.02)
    count = find_count(work, work.clock, BUDGET_S, least=5000)
    assert count * 0.02 <= 16 * BUDGET_S


@pytest.mark.parametrize(("cost", "count"), [(0, 1), (1, 5_000_000), (5_000, 1000), (10**12, 1)])
def test_least_count(cost: int, count: int) -> None:
    assert least_count(cost) == count


def test_the_count_that_is_told_is_the_one_that_was_set() -> None:
    work = Work(each_s=1e-5)
    assert time_work(work, work.clock, BUDGET_S).count == work.count
