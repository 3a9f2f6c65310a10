"""What is known after a case has run."""

from dataclasses import dataclass

from gradcheck.model.case import KnownFailure, Value
from gradcheck.model.place import Place
from gradcheck.model.status import Status
from gradcheck.model.trial import Trials


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured number with its unit and, where there is one, the limit that it was held against.

    `unit` is "" for a pure number. `uncertainty` is what the value may owe to the error of what it was measured
    against: only what is beyond it is held against the limit. The verdict is in the outcome's status: a metric only
    reports.
    """

    name: str
    value: float
    limit: float | None = None
    unit: str = ""
    uncertainty: float = 0.0

    @property
    def beyond(self) -> float:
        """The value less its uncertainty, at least 0; NaN for NaN."""
        return 0.0 if self.value - self.uncertainty < 0 else self.value - self.uncertainty


@dataclass(frozen=True, slots=True)
class Evidence:
    """One element of a tensor that shows what went wrong (or the worst one where nothing did).

    `index` is in ggml's order, i0 first. `got` is the value under test (backprop, target), `want` what it is
    compared with (numeric gradient, reference); `uncertainty` is the error that `want` may have itself.
    """

    tensor: str
    index: tuple[int, ...]
    got: float
    want: float
    asymmetry: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Placement:
    """Where ggml's scheduler ran the graph of a case.

    nodes: (op, device) of every node that computes, in order; views compute nothing
    splits: the parts into which the graph was cut, each on one device
    fallback: the name of the CPU, which takes what the target does not
    """

    nodes: tuple[tuple[str, str], ...]
    splits: int
    fallback: str

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that computed something, each once."""
        return tuple(dict.fromkeys(device for _, device in self.nodes))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a mode found out about a case.

    counts: how many elements were judged, left out and why: ("judged", 300), ("kink", 2)...
    samples: every timing of perf, in seconds
    tensors: the rows of the graph (mode `graph`), in the form of `gradcheck list --graph`
    diagnosis: what the errors look like, a line each: "a: backprop is 3 times the numeric gradient everywhere..."
    invalid_case: the case itself is at fault, which is wrong usage rather than a failure of the target
    methods: how the gradient of each param was found: (param, structured, dense, sampled or directional)
    placement: where every node ran; None where the target alone runs a case, without ggml's scheduler
    trials: what every seed gave, where there were several; all else is of the worst of them
    """

    status: Status
    reason: str = ""
    metrics: tuple[Metric, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    diagnosis: tuple[str, ...] = ()
    samples: tuple[float, ...] = ()
    tensors: tuple[tuple[Value, ...], ...] = ()
    out: int = -1
    invalid_case: bool = False
    methods: tuple[tuple[str, str], ...] = ()
    placement: Placement | None = None
    trials: Trials | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with the job that it belongs to.

    status: the outcome's, or XFAIL / XPASS where the case is a known failure
    log: what C code printed while the case ran (its tail, where it was long)
    """

    index: int
    mode: str
    op: str
    case_id: str
    target: str
    place: Place
    status: Status
    outcome: Outcome
    elapsed_s: float
    log: str = ""
    known: KnownFailure | None = None
