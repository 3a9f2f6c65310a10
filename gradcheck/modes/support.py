"""support: whether a target takes a case, forward and backward."""

from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, Unsupported
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench


def run(case: Case, bench: Bench) -> Outcome:
    """Ask for every node; nothing is computed. A case that the target takes forward is a PASS.

    Its counts are the answers, 1 or 0; backward has none where there is nothing to differentiate.
    """
    forward = _refusal(case, bench, backward=False)
    answers = [("forward", int(not forward))]
    backward = "" if case.params else "no input is differentiated"
    if case.params:
        backward = forward or _refusal(case, bench, backward=True)
        answers.append(("backward", int(not backward)))
    return Outcome(
        status=Status.UNSUPPORTED if forward else Status.PASS,
        reason=forward,
        counts=tuple(answers),
        notes=(f"no backward: {backward}",) if backward and not forward else (),
    )


def _refusal(case: Case, bench: Bench, *, backward: bool) -> str:
    """Why the target does not take the case; empty where it does."""
    try:
        bench.target.check(case, backward=backward)
    except (Aborted, Unsupported) as error:
        return str(error)
    return ""
