"""From an outcome to a result: known failures, and what is said of a job that crashed once."""

import dataclasses
from fnmatch import fnmatchcase

from gradcheck.model.case import KnownFailure
from gradcheck.model.job import CPU, Job
from gradcheck.model.result import Outcome, Result
from gradcheck.model.server import is_server, parse_server
from gradcheck.model.status import Status


def judge(job: Job, outcome: Outcome, elapsed_s: float, log: str = "") -> Result:
    """The result of a job. An outcome that the case announces as known is XFAIL; a pass in its place XPASS.

    Any other status stays as it is: a known failure that ends in a new way is news.
    """
    computing = _computing(job, outcome)
    # A backward graph fails wherever it is run.
    modes = {job.mode, "grad"} if job.settings.backward else {job.mode}
    entries = [
        entry
        for entry in job.case.known
        if entry.mode in modes
        and entry.concerns(job.case.variant)
        and entry.says in outcome.reason
        and any(_concerns(entry, name) for name in computing)
    ]
    entries.sort(key=lambda e: (e.mode != job.mode, not _concerns(e, job.target), _inherited(e, job)))
    known = next((entry for entry in entries if entry.status is outcome.status), entries[0] if entries else None)
    status = outcome.status
    if known is not None and status is known.status:
        status = Status.XFAIL
    elif known is not None and status is Status.PASS and _would_show(job, known):
        status = Status.XPASS
    return Result(
        index=job.index,
        mode=job.mode,
        op=job.case.op,
        case_id=job.case.id,
        target=job.target,
        place=job.case.place,
        status=status,
        outcome=outcome,
        elapsed_s=elapsed_s,
        log=log,
        known=known,
    )


def _would_show(job: Job, known: KnownFailure) -> bool:
    """Whether a pass shows that ggml is mended.

    Only where the target itself is what the entry speaks of, in the entry's mode, with memory of its own, and is not
    compared with itself; and where the entry speaks of the variant that has passed, or there is none.
    """
    if _inherited(known, job):
        return False
    itself = job.mode == "eval" and job.settings.reference.lower() == job.target.lower()
    return known.mode == job.mode and _concerns(known, job.target) and not job.settings.sched and not itself


def _inherited(entry: KnownFailure, job: Job) -> bool:
    """Whether an entry that speaks of a case is held against one of its variants."""
    return job.case.variant != "" and not entry.variant


def _concerns(entry: KnownFailure, device: str) -> bool:
    return fnmatchcase(device.lower(), entry.target.lower())


def _computing(job: Job, outcome: Outcome) -> set[str]:
    """The names of what can be to blame: the target, what its server has, and where ggml's scheduler ran nodes."""
    names = {job.target}
    if is_server(job.target):
        names.add(parse_server(job.target).serves or job.target)
    if outcome.placement is not None:
        names.update(outcome.placement.devices)
    elif job.settings.sched and outcome.status is Status.CRASH:
        # What died on the way has told nobody where it was.
        names.add(CPU)
    return names


def after_crash(outcome: Outcome, reason: str, served: int) -> Outcome:
    """The outcome of a second try, with a note of the first, which a worker that had run `served` others lost."""
    if outcome.status is Status.CRASH:
        return outcome
    ending = "passed" if outcome.status is Status.PASS else f"ended as {outcome.status}"
    others = "1 other case" if served == 1 else f"{served} other cases"
    note = f"crashed once ({reason}) in a worker that had run {others}; {ending} in a fresh one"
    return dataclasses.replace(outcome, notes=(*outcome.notes, note))
