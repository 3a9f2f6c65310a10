"""perf: how long a case takes on a target, and the rates that follow."""

import statistics

from gradcheck.model.case import Case
from gradcheck.model.graph import Cost, Part
from gradcheck.model.result import Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench, TimedProgram
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs
from gradcheck.numerics.timing import Repeatable, Timing, least_count, time_work


def run(case: Case, bench: Bench) -> Outcome:
    """Time the op that makes `out`, or the backward pass alone, until the budget is spent; every sample is kept."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    settings = bench.settings
    program = bench.target.open_timed(case, backward=settings.backward)
    try:
        cotangent = None
        if settings.backward:
            shape = tuple(reversed(program.ne))
            cotangent = sample_cotangent(settings.cotangent, shape, generator(settings.seed, case.id, "cotangent"))
        program.load(sample_inputs(case, settings.seed), cotangent)
        return _backward(program, bench) if settings.backward else _forward(program, bench)
    finally:
        program.free()


def _forward(program: TimedProgram, bench: Bench) -> Outcome:
    """The last op that computes, by itself: what ggml's own tool times. Beside it, the graph where it has more ops."""
    op, graph = program.repetition(Part.OP), program.repetition(Part.FORWARD)
    if not op.ops:
        return Outcome(Status.SKIP, "nothing is computed: `out` is a view, an input or empty")
    cost = program.cost
    timing = _time(op, cost, bench)
    whole: tuple[Metric, ...] = ()
    notes: tuple[str, ...] = ()
    if graph.ops > 1:
        whole = _metrics("graph_time", _time(graph, cost, bench))[:1]
        notes = (f"the graph computes {graph.ops} ops: time is that of the last one, graph_time that of all",)
    return Outcome(
        status=Status.PASS,
        metrics=(*_metrics("time", timing), *whole, *_rates(cost, statistics.median(timing.samples))),
        counts=(*_counts(timing, graph.ops), ("bytes", cost.bytes), ("flops", cost.flops)),
        notes=notes,
        samples=timing.samples,
    )


def _backward(program: TimedProgram, bench: Bench) -> Outcome:
    """The nodes that come after the forward ones. The declared cost is that of forward, so no rates are given."""
    work = program.repetition(Part.BACKWARD)
    if not work.ops:
        return Outcome(Status.SKIP, "nothing is computed backward: the gradient is a view of the output's")
    timing = _time(work, program.cost, bench)
    return Outcome(
        status=Status.PASS,
        metrics=_metrics("time", timing),
        counts=_counts(timing, work.ops),
        notes=("time is that of the backward pass alone",),
        samples=timing.samples,
    )


def _time(work: Repeatable, cost: Cost, bench: Bench) -> Timing:
    return time_work(work, bench.clock, bench.settings.budget_s, least_count(cost.flops or cost.bytes))


def _metrics(name: str, timing: Timing) -> tuple[Metric, ...]:
    """Median and quartiles, which lie among the samples however few they are."""
    low, median, high = statistics.quantiles(timing.samples, n=4, method="inclusive")
    return Metric(name, median, unit="s"), Metric(f"{name}_q1", low, unit="s"), Metric(f"{name}_q3", high, unit="s")


def _rates(cost: Cost, seconds: float) -> tuple[Metric, ...]:
    if not seconds:
        return ()
    flops = (Metric("flops", cost.flops / seconds, unit="FLOPS"),) if cost.flops else ()
    return (*flops, Metric("bandwidth", cost.bytes / seconds, unit="B/s"))


def _counts(timing: Timing, ops: int) -> tuple[tuple[str, int], ...]:
    """runs: how often the work was done in all; repetitions: in one graph; ops: that compute in the graph."""
    samples = len(timing.samples)
    return (("runs", samples * timing.count), ("samples", samples), ("repetitions", timing.count), ("ops", ops))
