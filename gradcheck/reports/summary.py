"""The last line of a report: what was checked, how it ended, and what it is worth."""

from collections import Counter
from collections.abc import Iterable

from gradcheck.model.job import Settings
from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports.wording import duration, one_line, plural


def summary_line(run: Run) -> str:
    """One line for a whole run, such as `948 cases on CPU: 700 pass, 248 unsupported; 12.3 s; seed 0`."""
    info = run.info
    where = f"on {', '.join(info.targets)}" if info.targets else "on no device"
    tail = f"{duration(run.elapsed_s)}; {_seeds(info.settings)}"
    if info.left_out:
        tail += f"; {plural(info.left_out, 'large case')} left out, --large runs them too"
    counts = counts_text(run.results)
    if run.interrupted:
        done = f"{len(run.results)} of {plural(info.jobs, 'check')}"
        return f"interrupted after {done} {where}: {counts}; {tail}"
    if not run.results:
        return f"nothing was checked: no case {where}; {tail}"
    head = f"{plural(info.cases, 'case')} {where}: {counts}; {tail}"
    if any(result.status.ran for result in run.results):
        return head
    return f"nothing was checked: {head}{_main_reason(run.results)}"


def _seeds(settings: Settings) -> str:
    last = settings.seed + settings.seeds - 1
    return f"seeds {settings.seed} to {last}" if settings.seeds > 1 else f"seed {settings.seed}"


def counts_text(results: Iterable[Result]) -> str:
    """`700 pass, 20 xfail`: every status that occurs, the bad ones right after pass."""
    counts = Counter(result.status for result in results)
    order = sorted(Status, key=lambda s: (s is not Status.PASS, not s.bad, not s.ran))
    return ", ".join(f"{counts[s]} {s.value.lower()}" for s in order if counts[s]) or "nothing"


def _main_reason(results: tuple[Result, ...]) -> str:
    reasons = Counter(one_line(r.outcome.reason) for r in results if r.outcome.reason)
    if not reasons:
        return ""
    reason, count = reasons.most_common(1)[0]
    share = "" if count == len(results) else f" ({count} of {len(results)})"
    return f"; {reason}{share}"
