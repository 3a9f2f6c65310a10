"""The commands that run cases: grad, eval, perf, support."""

import sys
from dataclasses import dataclass
from typing import Any

import click

from gradcheck.cli import options as given
from gradcheck.cli.outputs import Outputs
from gradcheck.cli.stdout import write_stdout
from gradcheck.model.errors import UsageError
from gradcheck.model.job import LARGE, METHODS, Settings
from gradcheck.reports import FORMATS
from gradcheck.reports.exit_code import exit_code
from gradcheck.reports.live import LiveProgress, live_stream
from gradcheck.reports.view import PLAIN_WIDTH, Detail, View, view_of

Limits = tuple[tuple[str, float], ...]

_LIMITED = (given.JOBS, given.TIMEOUT, given.MEMORY)
_WORKERS = (*_LIMITED, given.THREADS, given.ISOLATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What all four commands are told; the names are those of the options."""

    backends: tuple[str, ...]
    ops: tuple[tuple[str, ...], ...]
    pattern: str | None
    files: tuple[str, ...]
    variants: tuple[str, ...] | None = ("none",)
    seed: int
    seeds: int = 1
    suggest_limits: bool = False
    target_rate: float | None = None
    workers: int | None = None
    timeout_s: float
    memory_bytes: int | None
    threads: int
    isolate: bool
    form: str
    outputs: tuple[tuple[str, str], ...]
    color: bool | None
    verbose: bool
    quiet: bool

    @property
    def detail(self) -> Detail:
        """How much to tell; -v and -q together are a contradiction."""
        if self.verbose and self.quiet:
            raise UsageError("-v and -q cannot both be given")
        return Detail.VERBOSE if self.verbose else Detail.QUIET if self.quiet else Detail.NORMAL

    @property
    def wanted_rate(self) -> float | None:
        """The failure rate to propose limits for, where any are asked for."""
        if not self.suggest_limits and self.target_rate is not None:
            raise UsageError("--target-rate is for --suggest-limits")
        return (self.target_rate or given.DEFAULT_RATE) if self.suggest_limits else None


@click.command("grad", epilog="Example: gradcheck grad -b cpu -o SILU,GELU")
@given.options(
    given.BACKEND,
    *given.SELECTION,
    given.variants("default, but none for --case and for a case that is named by its id"),
    given.SEED,
    *given.TRIALS,
    click.option(
        "--cotangent",
        type=click.Choice(["random", "ones"]),
        default="random",
        show_default=True,
        help="The gradient fed into the output; ones is the sum loss of test-backend-ops.",
    ),
    click.option(
        "--cotangents",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="How many of them, at one backward pass each; of several one is ones.",
    ),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        default="auto",
        show_default=True,
        metavar="METHOD",
        help="How numeric gradients are found: structured (elements that share no output move together), dense (one by "
        "one), sampled, directional (all at once, along random directions), or auto: structured, and for what is too "
        "large sampled and directional.",
    ),
    click.option(
        "--max-elements",
        type=click.IntRange(min=1),
        default=Settings().max_elements,
        show_default=True,
        metavar="N",
        help="How many elements of one input --method sampled judges.",
    ),
    click.option(
        "--large",
        is_flag=True,
        help=f"Run the cases with more than {LARGE:,} elements to differentiate too, which take most of the time. "
        "Without it only those that --case or an id names.",
    ),
    given.LIMITS,
    given.ALLOC,
    *_LIMITED,
    given.THREAD_COUNTS,
    given.ISOLATION,
    *given.REPORT,
)
def grad_command(
    cotangent: str,
    cotangents: int,
    method: str,
    max_elements: int,
    limits: Limits,
    alloc: str,
    threads: tuple[int, ...],
    large: bool,
    **shared: Any,
) -> int:
    """Check backprop's gradients against numeric ones."""
    request = Request(**shared, threads=threads[0])
    settings = Settings(
        seed=request.seed,
        seeds=request.seeds,
        threads=request.threads,
        limits=limits,
        cotangent=cotangent,
        cotangents=cotangents,
        method=method,
        max_elements=max_elements,
        alloc=alloc,
        more_threads=threads[1:],
    )
    return check("grad", settings, request, large=large or bool(request.files))


@click.command("eval", epilog="Example: gradcheck eval -b cuda -o 'MUL_MAT*' -p type_a=q4_0")
@given.options(
    given.BACKEND,
    *given.SELECTION,
    given.variants("none"),
    given.SEED,
    *given.TRIALS,
    given.REFERENCE,
    click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Compute each case N times and demand the same bits.",
    ),
    click.option("--backward", is_flag=True, help="Compare gradients too; the reference must be a device."),
    click.option(
        "--sched",
        is_flag=True,
        help="Run as an application does, through ggml's scheduler: what the device does not take runs on the CPU, "
        "and the report says where everything ran.",
    ),
    given.LIMITS,
    *_WORKERS,
    *given.REPORT,
)
def eval_command(reference: str, repeat: int, backward: bool, sched: bool, limits: Limits, **shared: Any) -> int:
    """Check a device's results against those of a reference."""
    request = Request(**shared)
    settings = Settings(
        seed=request.seed,
        seeds=request.seeds,
        threads=request.threads,
        limits=limits,
        reference=reference,
        repeat=repeat,
        backward=backward,
        sched=sched,
    )
    return check("eval", settings, request)


@click.command("perf", epilog="Example: gradcheck perf -b vulkan -o MUL_MAT --output json=before.json")
@given.options(
    given.BACKEND,
    *given.SELECTION,
    given.SEED,
    click.option(
        "--budget",
        "budget_s",
        type=click.FloatRange(min=0, min_open=True),
        default=0.1,
        show_default=True,
        metavar="SECONDS",
        help="The time to spend on the samples of one case.",
    ),
    click.option(
        "--cases-of",
        type=click.Choice(["perf", "eval", "grad"]),
        default="perf",
        show_default=True,
        metavar="MODE",
        help="Time the cases of perf, which are fewer and larger, or those of eval or grad.",
    ),
    click.option(
        "--backward", is_flag=True, help="Time the backward pass alone, of every case that has one; no rates then."
    ),
    given.TIMEOUT,
    given.MEMORY,
    given.ALL_THREADS,
    given.ISOLATION,
    *given.REPORT,
)
def perf_command(budget_s: float, cases_of: str, backward: bool, **shared: Any) -> int:
    """Measure time and rates, one case after the other."""
    request = Request(**shared)
    settings = Settings(seed=request.seed, threads=request.threads, budget_s=budget_s, backward=backward)
    return check("perf", settings, request, cases_of)


@click.command("support", epilog="Example: gradcheck support -b metal")
@given.options(given.BACKEND, *given.SELECTION, given.SEED, *_WORKERS, *given.REPORT)
def support_command(**shared: Any) -> int:
    """Ask a device which ops it takes, forward and backward."""
    request = Request(**shared)
    return check("support", Settings(seed=request.seed, threads=request.threads), request)


def check(mode: str, settings: Settings, request: Request, cases_of: str = "", large: bool = True) -> int:
    """Run the cases, write every form that was asked for, and give the exit code."""
    from gradcheck import api

    detail, target_rate = request.detail, request.wanted_rate
    options = api.RunOptions(
        mode=mode,
        backends=request.backends,
        selection=api.Selection(
            ops=tuple(op for part in request.ops for op in part),
            pattern=request.pattern,
            files=request.files,
            variants=request.variants,
        ),
        settings=settings,
        workers=request.workers,
        timeout_s=request.timeout_s,
        memory_bytes=request.memory_bytes,
        isolate=request.isolate,
        cases_of=cases_of,
        large=large,
        target_rate=target_rate,
        command=("gradcheck", *click.get_current_context().find_root().obj),
    )
    with Outputs(request.outputs) as outputs:
        with LiveProgress(live_stream((sys.stderr, sys.stdout), detail), request.color) as live:
            run = api.run(options, on_event=live.show, on_start=live.start)
        try:
            outputs.write(run, View(PLAIN_WIDTH, detail=detail, unicode=True))
        finally:
            view = view_of(sys.stdout, request.color, detail)
            write_stdout([FORMATS[request.form](run, view)])
    return exit_code(run)
