"""What the parent asks of a worker."""

from dataclasses import dataclass

from gradcheck.model.case import Case

#: The name of the reference that is no device of ggml.
NUMPY = "numpy"
#: Asks for the reference that suits the target and the case.
AUTO = "auto"
#: ggml's name of the CPU's device.
CPU = "CPU"
#: How memory can be given to tensors: to each its own, or by ggml's graph allocator or scheduler, which use it again.
ALLOCATIONS = ("distinct", "gallocr", "sched")
#: Asks for all of them.
ALL = "all"
#: How numeric gradients are found. structured: elements that share no output move together; dense: one by one;
#: sampled: some of them; directional: all at once, in random directions; auto: structured, and where that would take
#: too long sampled and directional.
METHODS = ("auto", "structured", "dense", "sampled", "directional")
#: Cases of grad with more elements to differentiate run only where that is asked for.
LARGE = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run that modes read; one record for all modes, made once at the edge.

    seed: every random number follows from it, the case id and what the number is for
    seeds: with how many seeds a case is run: seed, seed + 1, ...
    limits: bounds of metrics given on the command line; they win over a case's own
    cotangent: "random" (abs(v) in [0.5, 1.5], random signs) or "ones" (the sum loss of the C++ tool)
    cotangents: how many gradients are fed into the output, one after the other; of several one is of the other kind
    method: one of METHODS
    max_elements: how many elements of one param the method "sampled" judges
    threads: CPU threads of a case
    budget_s: the time that perf spends on the samples of one case
    repeat: how often eval computes a case; every time must give the same bits
    backward: whether eval compares gradients too, and perf times the backward pass in place of the forward one
    reference: what eval compares with: a device, NUMPY, or AUTO for what suits the target and the case
    sched: whether eval runs the target's graphs through ggml's scheduler, with the CPU for what the target lacks
    alloc: one of ALLOCATIONS or ALL: under which grad demands the gradients that it found under `distinct`
    more_threads: other numbers of CPU threads with which grad demands the same
    """

    seed: int = 0
    seeds: int = 1
    limits: tuple[tuple[str, float], ...] = ()
    cotangent: str = "random"
    cotangents: int = 1
    method: str = "auto"
    max_elements: int = 10_000
    threads: int = 1
    budget_s: float = 0.1
    repeat: int = 1
    backward: bool = False
    reference: str = AUTO
    sched: bool = False
    alloc: str = "distinct"
    more_threads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One case in one mode on one target; `index` is its place in the report, `timeout_s` is for each seed."""

    index: int
    mode: str
    case: Case
    target: str
    settings: Settings
    timeout_s: float = 60.0
