"""One job: the mode is called, and whatever it raises becomes an Outcome. The only wide `except` is here."""

import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gradcheck.language.parse import LanguageError
from gradcheck.model.errors import Aborted, GradcheckError, InvalidCase, NoRoom, OutOfMemory, Unsupported
from gradcheck.model.job import Job, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench
from gradcheck.modes.trials import Tell, over_seeds
from gradcheck.worker.equipment import Equipment, Mode
from gradcheck.worker.keeping import Keeper, OpenDevice

_WORKER = Path(__file__).parent
_PACKAGE = _WORKER.parent


def perform(job: Job, equipment: Equipment, tell: Tell = lambda _seed, _tally: None) -> Outcome:
    """Run a job on its devices, with every seed that it asks for. Never raises an Exception; SystemExit passes.

    tell: is called before each seed where there are several
    """
    settings = job.settings
    if settings.seeds == 1:
        return _attempt(job, equipment.modes, equipment.device, settings)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    keeper = Keeper(equipment.device)

    def attempt(seed: int) -> Outcome:
        outcome = _attempt(job, equipment.modes, keeper.device, replace(settings, seed=seed, seeds=1))
        if outcome.status is Status.ERROR:
            # What was in use then may be in any state.
            keeper.forget()
        return outcome

    try:
        return over_seeds(attempt, seeds, tell)
    except Exception as error:
        return outcome_of(error)
    finally:
        keeper.forget()


def _attempt(job: Job, modes: Mapping[str, Mode], device: OpenDevice, settings: Settings) -> Outcome:
    """What the mode makes of the case, or what it raises says."""
    try:
        mode = modes[job.mode]
        threads = settings.threads
        bench = Bench(
            target=device(job.target, threads),
            reference=lambda: device(settings.reference, threads),
            settings=settings,
            clock=time.perf_counter,
            target_with=lambda count: device(job.target, count),
        )
        outcome = mode(job.case, bench)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"mode {job.mode} gave a {type(outcome).__name__}, not an Outcome")
        return outcome
    except Exception as error:
        outcome = outcome_of(error)
        if outcome.invalid_case and job.case.variant:
            # Nobody wrote it: that ggml takes no such tensors is no fault of the case.
            return Outcome(Status.UNSUPPORTED, outcome.reason)
        return outcome


#: What an exception that needs no more words says about a case; the first that fits.
_STATUSES: tuple[tuple[type[GradcheckError], Status], ...] = (
    (Unsupported, Status.UNSUPPORTED),
    (NoRoom, Status.SKIP),
    (Aborted, Status.CRASH),
)


def outcome_of(error: Exception) -> Outcome:
    """What an exception says about a case."""
    text = str(error)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return Outcome(status, text)
    if isinstance(error, InvalidCase | LanguageError):
        return Outcome(Status.ERROR, text, invalid_case=True)
    if isinstance(error, OutOfMemory | MemoryError):
        known = text.lower().startswith("out of memory")
        return Outcome(Status.CRASH, text if known else f"out of memory: {text or 'no memory for Python objects'}")
    if isinstance(error, GradcheckError):
        return Outcome(Status.ERROR, text)
    traceback.print_exception(error)
    return Outcome(Status.ERROR, f"{type(error).__name__}: {text} ({_origin(error)})")


def _origin(error: Exception) -> str:
    """The innermost line of this package on the way to the error, or of anything where there is none."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if _PACKAGE in frame[0].parents and _WORKER not in frame[0].parents]
    path, line = (own or frames)[-1]
    name = path.relative_to(_PACKAGE.parent) if _PACKAGE in path.parents else path.name
    return f"{name}:{line}"
