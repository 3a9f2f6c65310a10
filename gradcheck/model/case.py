"""A case: one concrete forward graph with its inputs, and what is known and demanded of it."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gradcheck.model.place import Place
from gradcheck.model.status import Status

#: ggml's order: ne[0] is contiguous. NumPy shapes are its reverse.
Shape = tuple[int, int, int, int]

#: What a variable of a case can hold. Tuples stand for YAML lists.
Value = None | bool | int | float | str | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Init:
    """How an input gets its values: a kind of `INIT_KINDS` and its arguments, all of them filled in.

    `data` is what a variant makes of the values: "special", "infinite", "negative", "spike",
    "constant", "sorted"... (numerics/corners.py); "": nothing.
    """

    kind: str = "uniform"
    args: tuple[tuple[str, Value], ...] = (("low", -1.0), ("high", 1.0), ("grid", None), ("gap", None))
    data: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """An input tensor.

    `param` says whether it is differentiated; where a float input is not, `reason` says why. `type` is
    ggml's name of the type. `written` says that the op changes it by design, as an optimizer does its state.
    """

    name: str
    type: str
    ne: Shape
    init: Init = Init()
    param: bool = True
    reason: str = ""
    written: bool = False


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A wrong result of ggml that has been looked into.

    It ends as `status`, for `reason`, and was seen with the ggml version `ggml`. `target` is a pattern of the
    devices that it concerns: `*` for a wrong rule, a device's name for a wrong kernel. `variant` is a pattern of the
    variants that it concerns; "" for the case itself, and then for what of it fails in the same way. `says` is what the
    reason for the failure must contain, for an entry that speaks of ggml's words rather than of cases.
    """

    mode: str
    status: Status
    reason: str
    ggml: str
    target: str = "*"
    variant: str = ""
    says: str = ""

    def concerns(self, variant: str) -> bool:
        """Whether this says something of a case's variant; "" is the case itself."""
        return not self.variant or (variant != "" and fnmatchcase(variant, self.variant))


@dataclass(frozen=True, slots=True)
class Picks:
    """What an output of indices means: each of its rows picks elements out of that row of the input `source`.

    Equal elements can be picked for one another, but none twice. `ordered` says that their order counts.
    """

    source: str
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """One graph to check.

    op: what `ggml_op_desc()` says of the op under test, or the name of a fused group of ops
    name: the variables as the C++ tool prints them, `ne=[4,1,1,1],v=0`
    vars: the variables that make the name, in order
    scope: every name that the graph can use: the variables and what `let` derives from them
    graph: statements of the graph language; the tensor called `out` is the result
    limits: bounds of metrics that replace the defaults of the mode
    flops, bytes: expressions over the graph's names for what one computation takes; "" for no declared flops, and
        for the bytes of `out` and of what it is computed from
    step: the step h of the numeric derivative in units of x; None: chosen from x and the types
    gradient: "zero" where every gradient is zero by definition, else "nonzero"
    picks: what the indices in `out` pick; None where `out` holds values
    placement: where ggml's scheduler must run every node: "target", "cpu", or "" for anywhere
    variant: which variant of the case `OP(name)` this is, `sliced` or `tails:33`; "" for the case itself
    accumulate: the gradient accumulators of the params hold a value already, as they do from the second micro-batch on
    """

    op: str
    name: str
    vars: tuple[tuple[str, Value], ...]
    scope: tuple[tuple[str, Value], ...]
    inputs: tuple[Input, ...]
    graph: str
    place: Place
    flops: str = ""
    bytes: str = ""
    limits: tuple[tuple[str, float], ...] = ()
    step: float | None = None
    gradient: str = "nonzero"
    picks: Picks | None = None
    placement: str = ""
    variant: str = ""
    accumulate: bool = False
    skip: str = ""
    known: tuple[KnownFailure, ...] = ()

    @property
    def id(self) -> str:
        """The id that selects, titles and compares this case: `OP(name=value,...)`, and `+variant` where it is one."""
        return f"{self.op}({self.name})" + (f"+{self.variant}" if self.variant else "")

    @property
    def differentiated(self) -> int:
        """How many elements are differentiated."""
        return sum(math.prod(spec.ne) for spec in self.params)

    @property
    def params(self) -> tuple[Input, ...]:
        """The inputs that are differentiated."""
        return tuple(i for i in self.inputs if i.param)
