"""perf: median time and bandwidth of a case on a target."""

import statistics

from gradcheck.model.case import Case
from gradcheck.model.result import Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench
from gradcheck.numerics.sampling import sample_inputs
from gradcheck.numerics.timing import sample_times


def run(case: Case, bench: Bench) -> Outcome:
    """Time the forward graph until the budget is spent; every sample is kept."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    program = bench.target.open(case)
    try:
        program.load(sample_inputs(case, bench.settings.seed))
        samples = sample_times(program.compute, bench.clock, bench.settings.budget_s)
        cost = program.cost
    finally:
        program.free()
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4)
    return Outcome(
        status=Status.PASS,
        metrics=(
            Metric("time", median, unit="s"),
            Metric("time_q1", low, unit="s"),
            Metric("time_q3", high, unit="s"),
            Metric("bandwidth", cost.bytes / median, unit="B/s"),
            *((Metric("flops", cost.flops / median, unit="FLOP/s"),) if cost.flops else ()),
        ),
        counts=(("samples", len(samples)), ("bytes", cost.bytes), ("flops", cost.flops)),
        samples=samples,
    )
