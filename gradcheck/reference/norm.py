"""Normalizations of rows, or of groups of channels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Rule, Tensor, like, over


def norm_rule(eps: float) -> Rule:
    """(x - mean(x)) / sqrt(var(x) + eps) for each row, with the variance over n."""
    return lambda x: (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)


def rms_norm_rule(eps: float) -> Rule:
    """Scale rows: x / sqrt(mean(x^2) + eps) for each row."""
    return lambda x: x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def l2_norm_rule(eps: float) -> Rule:
    """Scale rows: x / max(sqrt(sum(x^2)), eps) for each row."""
    return lambda x: x / np.maximum(np.sqrt(np.sum(x * x, axis=-1, keepdims=True)), eps)


def group_norm_rule(groups: int, eps: float) -> Rule:
    """(x - mean) / sqrt(var + eps) over groups of ceil(ne[2] / groups) channels, with all of ne[0] and ne[1]."""

    def rule(x: Array) -> Array:
        size = -(-x.shape[1] // groups)
        out = np.empty_like(x)
        for start in range(0, x.shape[1], size):
            part = x[:, start : start + size]
            centred = part - part.mean(axis=(1, 2, 3), keepdims=True)
            out[:, start : start + size] = centred / np.sqrt(part.var(axis=(1, 2, 3), keepdims=True) + eps)
        return out

    return rule


def rms_norm_back(grad: Tensor, a: Tensor, eps: float) -> Tensor:
    """The gradient of rms_norm(a): r g - r^3 a mean(a g), r = 1 / sqrt(mean(a^2) + eps)."""

    def rule(g: Array, x: Array) -> Array:
        r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
        out: Array = r * g - r**3 * x * np.mean(x * g, axis=-1, keepdims=True)
        return out

    return like(grad, rule, a)


def _with(rule: Callable[..., Rule], make: Callable[..., Tensor]) -> Callable[[Tensor, float], Tensor]:
    return lambda a, eps: make(a, rule(eps))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "norm": _with(norm_rule, like),
    "norm_inplace": _with(norm_rule, over),
    "rms_norm": _with(rms_norm_rule, like),
    "rms_norm_inplace": _with(rms_norm_rule, over),
    "l2_norm": _with(l2_norm_rule, like),
    "l2_norm_inplace": _with(l2_norm_rule, over),
    "group_norm": lambda a, groups, eps: like(a, group_norm_rule(groups, eps)),
    "group_norm_inplace": lambda a, groups, eps: over(a, group_norm_rule(groups, eps)),
    "rms_norm_back": rms_norm_back,
}
