"""The tool without its command line: select cases, run them, ask for devices and graphs."""

import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from gradcheck import __version__
from gradcheck.cases import Resizer, Selection, cases_by_mode, select, variants_by_id, with_known
from gradcheck.coverage import cover, worth_building
from gradcheck.flakiness import assess
from gradcheck.flakiness.limits import FEWEST_SEEDS
from gradcheck.model.case import Case
from gradcheck.model.coverage import OpCoverage
from gradcheck.model.errors import CaseFileError, UsageError
from gradcheck.model.event import Event, Finished
from gradcheck.model.job import Settings
from gradcheck.model.limits import DEFAULT_LIMITS
from gradcheck.model.result import Result
from gradcheck.model.run import DeviceInfo, LibraryInfo, Run, RunInfo
from gradcheck.model.server import Server, is_server
from gradcheck.plan import (
    check_reference,
    choose_targets,
    first_of_families,
    of_usual_size,
    plan,
    plan_graphs,
    servers_of,
)
from gradcheck.runner import Pool, PoolOptions
from gradcheck.runner.server import Crashed, ServerEvent, check_answers, free_endpoint
from gradcheck.runner.server import serve as serve_device
from gradcheck.variants import vary

__all__ = ["Crashed", "RunOptions", "Selection", "coverage", "devices", "graphs", "run", "select_cases", "serve"]

LIMITS = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything that a run is asked to do.

    workers: None means one for each core (perf and RPC: always one)
    timeout_s: for one case with one seed
    cases_of: the mode whose cases are run; "" for those of the mode itself
    large: whether grad runs the shipped cases with more than LARGE elements to differentiate, too
    target_rate: the failure rate for which limits are to be proposed; None: none are
    """

    mode: str
    backends: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)
    settings: Settings = field(default_factory=Settings)
    workers: int | None = None
    timeout_s: float = 120.0
    memory_bytes: int | None = None
    isolate: bool = True
    command: tuple[str, ...] = ()
    cases_of: str = ""
    large: bool = True
    target_rate: float | None = None

    @property
    def servers(self) -> tuple[Server, ...]:
        """The RPC servers that are asked for. Raises UsageError for one that is no address."""
        return servers_of((*self.backends, self.settings.reference))

    @property
    def pool(self) -> PoolOptions:
        """How many workers, and what they may use."""
        # A server takes one client at a time.
        alone = self.mode == "perf" or bool(self.servers)
        workers = 1 if alone else self.workers or os.cpu_count() or 1
        return PoolOptions(workers=workers, memory_bytes=self.memory_bytes, isolate=self.isolate)


def select_cases(selection: Selection, mode: str) -> tuple[Case, ...]:
    """The cases of a mode, and the variants that are asked for. Raises UsageError or CaseFileError."""
    return tuple(_with_variants(select(selection, mode), selection, mode, default=False))


def run(
    options: RunOptions,
    on_event: Callable[[Event], None] = lambda _event: None,
    on_start: Callable[[RunInfo, int], None] = lambda _info, _total: None,
) -> Run:
    """Run the selected cases; interrupted by Ctrl-C or SIGTERM, it gives what is known so far.

    on_start gets what is about to run and the number of jobs; on_event everything that happens then.
    Raises GradcheckError before anything ran, never after.
    """
    _check_limits(options)
    _check_seeds(options)
    check_answers(options.servers)
    begin = time.monotonic()
    with Pool(options.pool) as pool:
        pool.prepare()
        cases_of = options.cases_of or options.mode
        plain = select(options.selection, cases_of)
        if not plain:
            raise UsageError(f"no case is left to run in mode {options.mode}")
        selected = len(plain)
        if not options.large:
            plain = of_usual_size(plain, variants_by_id(options.selection))
        library = pool.inspect(options.servers)
        targets = choose_targets(options.backends, library.devices)
        check_reference(options.settings.reference, library.devices)
        _preflight(pool, plain, next((t.name for t in targets if not is_server(t.name)), "CPU"))
        default = options.mode == "grad" and not options.selection.files
        cases = _with_variants(plain, options.selection, cases_of, default=default)
        jobs = plan(cases, targets, options.mode, options.settings, options.timeout_s)
        info = _info(options, targets, library, jobs=len(jobs), cases=len(cases), left_out=selected - len(plain))
        on_start(info, len(jobs))
        results: dict[int, Result] = {}
        interrupted = False
        try:
            with _sigterm_interrupts():
                for event in pool.run(jobs):
                    if isinstance(event, Finished):
                        results[event.result.index] = event.result
                    on_event(event)
        except KeyboardInterrupt:
            interrupted = True
    ordered = tuple(results[index] for index in sorted(results))
    flakiness = assess(ordered, options.target_rate) if options.settings.seeds > 1 else None
    return Run(info, ordered, time.monotonic() - begin, interrupted, flakiness=flakiness)


def _with_variants(cases: Sequence[Case], selection: Selection, mode: str, *, default: bool) -> list[Case]:
    resize = Resizer(selection, mode)
    return with_known(vary(cases, selection.variants, variants_by_id(selection), resize, default=default))


def devices(backends: Sequence[str] = ()) -> LibraryInfo:
    """The ggml that workers load, and its devices or those that `backends` mean. Raises LibraryError or UsageError."""
    servers = servers_of(backends)
    check_answers(servers)
    with Pool(PoolOptions(workers=1)) as pool:
        library = pool.inspect(servers)
    return replace(library, devices=tuple(choose_targets(backends, library.devices)))


def serve(
    host: str, port: int, backends: Sequence[str], threads: int
) -> tuple[Server, DeviceInfo, Iterator[ServerEvent]]:
    """Where a device is going to be served, which one it is, and what happens then, for ever.

    Nothing is served before the events are asked for. Raises UsageError, and LibraryError then too.
    """
    server = free_endpoint(host, port)
    chosen = devices(backends).devices
    if len(chosen) != 1 or is_server(chosen[0].name):
        listed = ", ".join(device.name for device in chosen) or "none"
        raise UsageError(f"serve takes one device of this machine; {' '.join(backends)} means {listed}")
    return server, chosen[0], serve_device(PoolOptions(workers=1), server, chosen[0].name, threads)


def graphs(cases: Sequence[Case], *, backward: bool = False) -> Iterator[Result]:
    """The graph of each case, in order; a result whose status is not PASS says why there is none."""
    mode = "backward_graph" if backward else "graph"
    early: dict[int, Result] = {}
    following = 0
    with Pool(PoolOptions(workers=min(len(cases), os.cpu_count() or 1) or 1)) as pool:
        for event in pool.run(plan_graphs(cases, "CPU", mode)):
            if isinstance(event, Finished):
                early[event.result.index] = event.result
            while following in early:
                yield early.pop(following)
                following += 1


def coverage(files: tuple[str, ...] = ()) -> list[OpCoverage]:
    """How well the cases of these files, or the shipped ones, cover each op of the ggml that workers load.

    Raises CaseFileError, UsageError and LibraryError.
    """
    ops = devices().ops
    cases = cases_by_mode(files, ("grad", "eval"))
    tested = {case.op for found in cases.values() for case in found}
    cases |= cases_by_mode(files, ("support",), [op for op in ops if op not in tested])
    chosen = worth_building(cases)
    return cover(ops, cases, zip(chosen, graphs(chosen, backward=True), strict=True))


def _preflight(pool: Pool, cases: Sequence[Case], target: str) -> None:
    """Build one graph of each family: a slip in a case file is told once, and before anything runs."""
    jobs = plan_graphs(first_of_families(cases), target)
    results = [event.result for event in pool.run(jobs) if isinstance(event, Finished)]
    bad = sorted((r for r in results if r.outcome.invalid_case), key=lambda result: result.index)
    if bad:
        raise CaseFileError(bad[0].outcome.reason, bad[0].place)


def _check_limits(options: RunOptions) -> None:
    known = LIMITS[options.mode]
    for name, _ in options.settings.limits:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"no limit {name} in mode {options.mode}; there are: {listed}")


def _check_seeds(options: RunOptions) -> None:
    if options.target_rate is not None and options.settings.seeds < FEWEST_SEEDS:
        raise UsageError(f"limits cannot be proposed from fewer than {FEWEST_SEEDS} seeds; add --seeds {FEWEST_SEEDS}")


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does. Only the main thread may set handlers."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        old = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _info(
    options: RunOptions, targets: list[DeviceInfo], library: LibraryInfo, *, jobs: int, cases: int, left_out: int
) -> RunInfo:
    from importlib.metadata import version  # late: it costs a tenth of the start of `gradcheck list`

    return RunInfo(
        mode=options.mode,
        command=options.command,
        targets=tuple(target.name for target in targets),
        settings=options.settings,
        jobs=jobs,
        cases=cases,
        library=library,
        gradcheck_version=__version__,
        python_version=platform.python_version(),
        numpy_version=version("numpy"),
        platform=platform.platform(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        left_out=left_out,
    )
