"""support: whether a target takes a case, forward and backward."""

from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, Unsupported
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench


def run(case: Case, bench: Bench) -> Outcome:
    """Ask for every node; nothing is computed. A case that the target takes forward is a PASS."""
    forward = _refusal(case, bench, backward=False)
    backward = "no input is differentiated"
    if case.params:
        backward = forward or _refusal(case, bench, backward=True)
    return Outcome(
        status=Status.UNSUPPORTED if forward else Status.PASS,
        reason=forward,
        counts=(("forward", int(not forward)), ("backward", int(not backward))),
        notes=(f"no backward: {backward}",) if backward and not forward else (),
    )


def _refusal(case: Case, bench: Bench, *, backward: bool) -> str:
    """Why the target does not take the case; empty where it does."""
    try:
        bench.target.check(case, backward=backward)
    except (Aborted, Unsupported) as error:
        return str(error)
    return ""
