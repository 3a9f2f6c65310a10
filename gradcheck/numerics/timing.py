"""Repeated timing of work until a budget is spent."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

#: One graph shall take this long: what its launch costs, microseconds, then vanishes.
GRAPH_S = 5e-3
#: Fewer samples give no spread...
FEWEST_SAMPLES = 7
MOST_SAMPLES = 10_000
#: ...but of work that takes seconds three are enough, once this much time is spent.
PATIENCE_S = 5.0
FEWEST_SLOW_SAMPLES = 3
#: Another program can make one look too long, never too short.
LOOKS = 3
#: From one look to the next the count grows at most by this factor: a first time is mostly the launch.
_GROWTH = 16
#: What any device does in a second: bytes moved, or floating-point operations.
_SLOWEST = 1e9


class Repeatable(Protocol):
    """Work that can be done many times in one go."""

    @property
    def ops(self) -> int:
        """How many ops of it compute something; 0: there is nothing to time."""

    @property
    def most(self) -> int:
        """How many times in one go there is room for."""

    def resize(self, count: int) -> None:
        """Let one call of `compute` do the work `count` times."""

    def compute(self) -> None:
        """Do it, and wait until it is done."""


@dataclass(frozen=True, slots=True)
class Timing:
    """count: how many times in one go; samples: the seconds of one time, averaged over each go."""

    count: int
    samples: tuple[float, ...]


def time_work(work: Repeatable, clock: Callable[[], float], budget_s: float, least: int = 1) -> Timing:
    """Find out how many times in one go make the launch vanish, then take samples until the budget is spent.

    least: how many times in one go it shall be, unless that alone takes the whole budget
    """
    count = find_count(work, clock, budget_s, least)
    samples: list[float] = []
    begin = clock()
    while not _enough(len(samples), clock() - begin, budget_s):
        start = clock()
        work.compute()
        samples.append((clock() - start) / count)
    return Timing(count, tuple(samples))


def least_count(cost: int) -> int:
    """How many times in one go work of so many bytes or operations must be done to take GRAPH_S on a slow device.

    Where other programs keep the processors busy, the start of a graph can take longer than GRAPH_S each time, as
    threads wait for each other; then nothing but the cost tells that the work itself is short.
    """
    return max(1, int(_SLOWEST * GRAPH_S) // cost) if cost else 1


def find_count(work: Repeatable, clock: Callable[[], float], budget_s: float, least: int = 1) -> int:
    """How many times the work has to be done in one go to take GRAPH_S, or less where the budget is short.

    Leaves the work resized to that count, and warm. `least` is that of `time_work`.
    """
    goal = min(GRAPH_S, budget_s / FEWEST_SAMPLES)
    begin = clock()
    count = 1
    while True:
        work.resize(count)
        took = math.inf
        for _ in range(LOOKS):
            start = clock()
            work.compute()
            took = min(took, clock() - start)
            if took < goal or clock() - begin >= budget_s:
                break
        if took >= budget_s or count == work.most or (took >= goal and count >= least):
            return count
        wanted = max(least, math.ceil(count * goal / took)) if took > 0 else work.most
        count = min(work.most, max(2 * count, min(wanted, _GROWTH * count)))


def _enough(samples: int, elapsed_s: float, budget_s: float) -> bool:
    if samples < FEWEST_SAMPLES:
        return samples >= FEWEST_SLOW_SAMPLES and elapsed_s >= max(budget_s, PATIENCE_S)
    return elapsed_s >= budget_s or samples >= MOST_SAMPLES
