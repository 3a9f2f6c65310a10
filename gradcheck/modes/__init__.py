"""What can be asked of a case: one small file a mode, `run(case, bench) -> Outcome`."""

from collections.abc import Callable

from gradcheck.model.case import Case
from gradcheck.model.result import Outcome
from gradcheck.modes import eval as evaluation
from gradcheck.modes import grad, graph, perf, support
from gradcheck.modes.bench import Bench

Mode = Callable[[Case, Bench], Outcome]

MODES: dict[str, Mode] = {
    "grad": grad.run,
    "eval": evaluation.run,
    "perf": perf.run,
    "support": support.run,
    "graph": graph.run,
    "backward_graph": graph.run_backward,
}
