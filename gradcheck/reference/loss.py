"""Losses."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, new


def log_softmax(x: Array) -> Array:
    """Compute x - log(sum(exp(x))) for each row."""
    moved = x - x.max(axis=-1, keepdims=True)
    out: Array = moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))
    return out


def cross_entropy_loss(a: Tensor, b: Tensor) -> Tensor:
    """-sum(b log_softmax(a)) / rows: logits a and labels b of one shape, a single number."""
    demand(a.ne == b.ne, f"cross_entropy_loss: {a} and {b} differ")
    rows = a.ne[1] * a.ne[2] * a.ne[3]

    def rule(x: Array, labels: Array) -> Array:
        return (-np.sum(log_softmax(x) * labels) / rows).reshape(1, 1, 1, 1)

    return new(a.type, (1, 1, 1, 1), rule, a, b)


def cross_entropy_loss_back(grad: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Its gradient for rows of labels that add up to 1: (softmax(a) - b) g / rows, in the shape of `a`."""
    demand(a.ne == b.ne and grad.elements == 1, f"cross_entropy_loss_back: {a} and {b} differ, or {grad} is no number")
    rows = a.ne[1] * a.ne[2] * a.ne[3]
    return like(a, lambda x, labels, g: (np.exp(log_softmax(x)) - labels) * g.ravel()[0] / rows, b, grad)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cross_entropy_loss": cross_entropy_loss,
    "cross_entropy_loss_back": cross_entropy_loss_back,
}
