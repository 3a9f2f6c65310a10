"""Steps of optimizers: they update the weights, and their own state, in place."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, over


def opt_step_adamw(a: Tensor, grad: Tensor, m: Tensor, v: Tensor, settings: Tensor) -> Tensor:
    """AdamW: m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, a = (1 - alpha wd) a - alpha h1 m / (sqrt(h2 v) + eps).

    settings: alpha, b1, b2, eps, wd, h1 = 1/(1-b1^t), h2 = 1/(1-b2^t); the result is a view of `a`
    """
    demand(a.ne == grad.ne == m.ne == v.ne, "opt_step_adamw: the weights, their gradient and its moments differ")
    demand(settings.elements == 7, f"opt_step_adamw: {settings} are not 7 settings")

    def rule(w: Array, g: Array, first: Array, second: Array, given: Array) -> Array:
        alpha, b1, b2, eps, decay, h1, h2 = given.ravel()
        m.write(b1 * first + (1 - b1) * g)
        v.write(b2 * second + (1 - b2) * g * g)
        return (1 - alpha * decay) * w - alpha * h1 * m.array / (np.sqrt(h2 * v.array) + eps)

    return over(a, rule, grad, m, v, settings)


def opt_step_sgd(a: Tensor, grad: Tensor, settings: Tensor) -> Tensor:
    """SGD: a = (1 - alpha wd) a - alpha g; settings: alpha, wd; the result is a view of `a`."""
    demand(a.ne == grad.ne, f"opt_step_sgd: {a} and {grad} differ")
    demand(settings.elements == 2, f"opt_step_sgd: {settings} are not 2 settings")

    def rule(w: Array, g: Array, given: Array) -> Array:
        alpha, decay = given.ravel()
        return (1 - alpha * decay) * w - alpha * g

    return over(a, rule, grad, settings)


FUNCTIONS: dict[str, Callable[..., Any]] = {"opt_step_adamw": opt_step_adamw, "opt_step_sgd": opt_step_sgd}
