"""graph: the tensors of a case's graph, for `list --graph` and `show`; nothing is allocated."""

from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, Unsupported
from gradcheck.model.graph import Description
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench


def run(case: Case, bench: Bench) -> Outcome:
    """The rows of the forward graph, with flops and bytes as counts."""
    return _outcome(Status.PASS, "", bench.target.describe(case))


def run_backward(case: Case, bench: Bench) -> Outcome:
    """The rows of the forward and the backward graph; the forward rows and a reason where there is none."""
    try:
        return _outcome(Status.PASS, "", bench.target.describe(case, backward=True))
    except (Aborted, Unsupported) as error:
        return _outcome(Status.UNSUPPORTED, str(error), bench.target.describe(case))


def _outcome(status: Status, reason: str, found: Description) -> Outcome:
    counts = (("flops", found.cost.flops), ("bytes", found.cost.bytes))
    return Outcome(status, reason, tensors=found.tensors, out=found.out, counts=counts)
