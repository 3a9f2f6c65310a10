"""Repeated timing of a call until a budget is spent."""

from collections.abc import Callable

#: A sample shorter than this is mostly the clock's own; calls are repeated inside it.
SHORTEST_SAMPLE_S = 50e-6
#: Fewer samples give no spread.
FEWEST_SAMPLES = 7
MOST_SAMPLES = 10_000


def sample_times(call: Callable[[], None], clock: Callable[[], float], budget_s: float) -> tuple[float, ...]:
    """Seconds a call, for each sample, after a warm-up that also finds how many calls one sample needs."""
    repeats = 1
    while True:
        start = clock()
        for _ in range(repeats):
            call()
        elapsed = clock() - start
        if elapsed >= SHORTEST_SAMPLE_S or repeats >= 2**20:
            break
        repeats *= 2
    samples: list[float] = []
    begin = clock()
    while len(samples) < MOST_SAMPLES and (len(samples) < FEWEST_SAMPLES or clock() - begin < budget_s):
        start = clock()
        for _ in range(repeats):
            call()
        samples.append((clock() - start) / repeats)
    return tuple(samples)
