"""Gated linear units: out = f(x) g, with x and g as two tensors or as the halves of each row of one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import Unsupported
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, new
from gradcheck.reference.unary import gelu, gelu_erf, gelu_quick, relu, sigmoid, silu

#: ggml's name of the unit -> f; GLU_OP_<name in capitals> is its enum word.
RULES: dict[str, Callable[[Array], Array]] = {
    "reglu": relu,
    "geglu": gelu,
    "swiglu": silu,
    "geglu_erf": gelu_erf,
    "geglu_quick": gelu_quick,
}


def glu(a: Tensor, op: str, swapped: int) -> Tensor:
    """f(x) g with [x, g] = the halves of a's rows, or [g, x] where swapped; out has half of a's ne[0].

    The last element of a row of odd length belongs to neither half.
    """
    f, half = _rule(op), a.ne[0] // 2

    def rule(both: Array) -> Array:
        first, second = both[..., :half], both[..., half : 2 * half]
        return f(second) * first if swapped else f(first) * second

    return new(a.type, (half, *a.ne[1:]), rule, a)


def glu_split(a: Tensor, b: Tensor, op: str) -> Tensor:
    """f(a) b, both of one shape."""
    demand(a.ne == b.ne, f"glu_split: {a} and {b} differ")
    f = _rule(op)
    return like(a, lambda x, g: f(x) * g, b)


def swiglu_oai(a: Tensor, b: Tensor, alpha: float, limit: float) -> Tensor:
    """Compute x sigmoid(alpha x) (1 + y), x = min(a, limit), y = b within [-limit, limit]."""
    demand(a.ne == b.ne, f"swiglu_oai: {a} and {b} differ")

    def rule(left: Array, right: Array) -> Array:
        x = np.minimum(left, limit)
        return x * sigmoid(alpha * x) * (1 + np.clip(right, -limit, limit))

    return like(a, rule, b)


def _rule(op: str) -> Callable[[Array], Array]:
    name = op.removeprefix("GLU_OP_").lower()
    if name not in RULES:
        raise Unsupported(f"the NumPy reference has no {op} of this form yet")
    return RULES[name]


def _halves(op: str, swapped: int) -> Callable[[Tensor], Tensor]:
    return lambda a: glu(a, op, swapped)


def _split(op: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda a, b: glu_split(a, b, op)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "glu": glu,
    "glu_split": glu_split,
    **{op: _halves(op, 0) for op in RULES},
    **{f"{op}_swapped": _halves(op, 1) for op in RULES},
    **{f"{op}_split": _split(op) for op in RULES},
    "swiglu_oai": swiglu_oai,
}
