"""A graph as plain data."""

from dataclasses import dataclass
from enum import StrEnum

from gradcheck.model.case import Value

#: (op_desc, name, type, ne, nb, param, view offset, source rows, op_params) of a tensor.
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one computation of a graph takes: floating-point operations (0 where undeclared) and bytes moved."""

    flops: int
    bytes: int


class Part(StrEnum):
    """What of a graph is timed: the last op that computes, all forward nodes, or those of the backward pass alone."""

    OP = "op"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class Description:
    """The tensors of a graph in the order of creation, the index of the output, and the cost of the forward part."""

    tensors: tuple[Row, ...]
    out: int
    cost: Cost
