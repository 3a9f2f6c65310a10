"""Functions of one number, applied to each element: the result has the type and shape of `a`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import Unsupported
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Rule, Tensor, like, over

_ERF = np.frompyfunc(math.erf, 1, 1)


def step(x: Array) -> Array:
    """1 where x > 0, else 0."""
    return np.where(x > 0, 1.0, 0.0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    out: Array = np.where(x >= 0, 1.0, small) / (1 + small)
    return out


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return np.where(x > 0, x, 0.0)


def silu(x: Array) -> Array:
    """Swish: x sigmoid(x)."""
    return x * sigmoid(x)


def elu(x: Array) -> Array:
    """Where x > 0: x; elsewhere exp(x) - 1."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def softplus(x: Array) -> Array:
    """log(1 + exp(x))."""
    out: Array = np.logaddexp(0.0, x)
    return out


def gelu(x: Array) -> Array:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the approximation by tanh."""
    out: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))
    return out


def gelu_erf(x: Array) -> Array:
    """x/2 (1 + erf(x / sqrt(2)))."""
    return 0.5 * x * (1 + np.asarray(_ERF(x / math.sqrt(2)), dtype=np.float64))


def gelu_quick(x: Array) -> Array:
    """Swish with a slope: x sigmoid(1.702 x)."""
    return x * sigmoid(1.702 * x)


def hardsigmoid(x: Array) -> Array:
    """(x + 3) / 6 within [0, 1]."""
    return np.clip((x + 3) / 6, 0, 1)


def hardswish(x: Array) -> Array:
    """Swish of straight lines: x hardsigmoid(x)."""
    return x * hardsigmoid(x)


def round_away(x: Array) -> Array:
    """The nearest whole number; halves go away from zero, where NumPy's go to the even one."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


#: ggml's name of the function -> the function; UNARY_OP_<name in capitals> is its enum word.
RULES: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "sgn": np.sign,
    "neg": np.negative,
    "step": step,
    "tanh": np.tanh,
    "elu": elu,
    "relu": relu,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "gelu_quick": gelu_quick,
    "gelu_erf": gelu_erf,
    "silu": silu,
    "hardswish": hardswish,
    "hardsigmoid": hardsigmoid,
    "exp": np.exp,
    "expm1": np.expm1,
    "softplus": softplus,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": round_away,
    "trunc": np.trunc,
}
#: These are ops of their own in ggml, and no words of `unary`.
MATHS: dict[str, Callable[[Array], Array]] = {
    "sqr": np.square,
    "sqrt": np.sqrt,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}


def unary(a: Tensor, op: str) -> Tensor:
    """f(a) for the f that an enum word names, such as UNARY_OP_SILU."""
    return like(a, _rule(op))


def unary_inplace(a: Tensor, op: str) -> Tensor:
    """The same, written into `a`."""
    return over(a, _rule(op))


def scale(a: Tensor, s: float) -> Tensor:
    """Scale: s a."""
    return like(a, lambda x: s * x)


def scale_inplace(a: Tensor, s: float) -> Tensor:
    """Scale in place: s a."""
    return over(a, lambda x: s * x)


def scale_bias(a: Tensor, s: float, b: float) -> Tensor:
    """Scale and shift: s a + b."""
    return like(a, lambda x: s * x + b)


def scale_bias_inplace(a: Tensor, s: float, b: float) -> Tensor:
    """Scale and shift in place: s a + b."""
    return over(a, lambda x: s * x + b)


def fill(a: Tensor, c: float) -> Tensor:
    """The shape of `a` with c everywhere."""
    return like(a, lambda x: np.full(x.shape, float(c)))


def fill_inplace(a: Tensor, c: float) -> Tensor:
    """The number c everywhere in `a`."""
    return over(a, lambda x: np.full(x.shape, float(c)))


def clamp(a: Tensor, low: float, high: float) -> Tensor:
    """min(max(a, low), high); ggml writes it into `a`."""
    return over(a, lambda x: np.clip(x, low, high))


def leaky_relu(a: Tensor, slope: float, inplace: int) -> Tensor:
    """Where a > 0: a; elsewhere slope a."""
    return (over if inplace else like)(a, lambda x: np.where(x > 0, x, slope * x))


def xielu(a: Tensor, alpha_n: float, alpha_p: float, beta: float, eps: float) -> Tensor:
    """Where a > 0: softplus(alpha_p) a^2 + beta a; elsewhere c (exp(min(a, eps)) - 1 - a) + beta a.

    c = beta + softplus(alpha_n)
    """
    below = beta + float(softplus(np.array(alpha_n)))
    above = float(softplus(np.array(alpha_p)))

    def rule(x: Array) -> Array:
        return np.where(x > 0, above * x * x, below * (np.expm1(np.minimum(x, eps)) - x)) + beta * x

    return like(a, rule)


def silu_back(grad: Tensor, a: Tensor) -> Tensor:
    """The gradient of silu(a): g s (1 + a (1 - s)), s = sigmoid(a)."""

    def rule(g: Array, x: Array) -> Array:
        s = sigmoid(x)
        return g * s * (1 + x * (1 - s))

    return like(grad, rule, a)


def _rule(op: str) -> Rule:
    name = op.removeprefix("UNARY_OP_").lower()
    if name not in RULES:
        raise Unsupported(f"the NumPy reference has no {op} yet")
    return RULES[name]


def _named(rule: Rule, make: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda a: make(a, rule)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _named(rule, like) for name, rule in (RULES | MATHS).items()},
    **{f"{name}_inplace": _named(rule, over) for name, rule in (RULES | MATHS).items()},
    "unary": unary,
    "unary_inplace": unary_inplace,
    "scale": scale,
    "scale_inplace": scale_inplace,
    "scale_bias": scale_bias,
    "scale_bias_inplace": scale_bias_inplace,
    "fill": fill,
    "fill_inplace": fill_inplace,
    "clamp": clamp,
    "leaky_relu": leaky_relu,
    "xielu": xielu,
    "silu_back": silu_back,
}
