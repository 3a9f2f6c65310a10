"""graph: the tensors of a case's graph, for `list --graph` and `show`; nothing is allocated."""

from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, Unsupported
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench


def run(case: Case, bench: Bench) -> Outcome:
    """The rows of the forward graph."""
    tensors, out = bench.target.describe(case)
    return Outcome(Status.PASS, tensors=tensors, out=out)


def run_backward(case: Case, bench: Bench) -> Outcome:
    """The rows of the forward and the backward graph; the forward rows and a reason where there is none."""
    try:
        tensors, out = bench.target.describe(case, backward=True)
    except (Aborted, Unsupported) as error:
        tensors, out = bench.target.describe(case)
        return Outcome(Status.UNSUPPORTED, str(error), tensors=tensors, out=out)
    return Outcome(Status.PASS, tensors=tensors, out=out)
