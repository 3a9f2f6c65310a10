"""Softmax with all that attention needs, and the diagonal masks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.binary import tiled
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Rule, Tensor, demand, like, over


def slopes(heads: int, max_bias: float) -> Array:
    """ALiBi's slope of each head.

    With n the largest power of two <= heads, the first n heads have 2^(-max_bias (h+1) / n), and the others
    2^(-max_bias/2 (2 (h-n) + 1) / n). Without a bias every slope is 1.
    """
    if max_bias <= 0 or heads < 1:
        return np.ones(heads)
    n = 2 ** int(math.log2(heads))
    exponents = [(h + 1) / n if h < n else (h - n + 0.5) / n for h in range(heads)]
    return 2.0 ** (-max_bias * np.array(exponents))


def powers_and_sum(z: Array, sinks: Array | None) -> tuple[Array, Array]:
    """exp(z - m) for each row and their sums, m being the row's largest element; z is overwritten.

    z: [n, heads, rows, ...]; with sinks m is at least sinks[head], and exp(sinks[head] - m) joins the sum
    """
    largest = z.max(axis=-1, keepdims=True)
    sink = None if sinks is None else sinks.ravel()[None, :, None, None]
    if sink is not None:
        largest = np.maximum(largest, sink)
    # In a row of -inf alone the differences would be NaN, and not only their quotients.
    shift = np.where(np.isneginf(largest), 0.0, largest)
    z -= shift
    powers: Array = np.exp(z, out=z)
    total = powers.sum(axis=-1, keepdims=True)
    return powers, total if sink is None else total + np.exp(sink - shift)


def soft_max_ext(a: Tensor, mask: Tensor | int | None, scale: float, max_bias: float) -> Tensor:
    """exp(z) / sum(exp(z)) for each row of z = scale a + slope mask.

    slope: of the head, a's dimension 2 (see `slopes`)
    mask: [a.ne[0], at least a.ne[1], ...], repeated along dimensions 2 and 3
    With sinks (soft_max_add_sinks) exp(sinks[head]) joins the sum.
    """
    return like(a, _rule(scale, max_bias), _mask(a, mask, max_bias), None)


def soft_max_ext_inplace(a: Tensor, mask: Tensor | int | None, scale: float, max_bias: float) -> Tensor:
    """The same, written into `a`."""
    return over(a, _rule(scale, max_bias), _mask(a, mask, max_bias), None)


def soft_max_add_sinks(out: Tensor, sinks: Tensor | int | None) -> None:
    """Give a soft_max that was made before a sink for each head; None takes it away."""
    demand(len(out.sources) == 3, "soft_max_add_sinks: it is for the result of a soft_max")
    given = sinks if isinstance(sinks, Tensor) else None
    demand(given is None or given.ne[0] == out.ne[2], f"soft_max_add_sinks: {given} is not a number for each head")
    out.sources = (*out.sources[:2], given)


def soft_max_ext_back(grad: Tensor, y: Tensor, scale: float, _max_bias: float) -> Tensor:
    """The gradient of y = soft_max_ext(a): scale y (g - sum(g y)), whatever was added to `a`."""
    return like(grad, _back_rule(scale), y)


def soft_max_ext_back_inplace(grad: Tensor, y: Tensor, scale: float, _max_bias: float) -> Tensor:
    """The same, written into `grad`."""
    return over(grad, _back_rule(scale), y)


def _back_rule(scale: float) -> Rule:
    return lambda g, p: scale * p * (g - np.sum(g * p, axis=-1, keepdims=True))


def diag_mask_inf(a: Tensor, past: int) -> Tensor:
    """-inf where i0 > past + i1, else a."""
    return like(a, lambda x: _masked(x, past, -np.inf))


def diag_mask_inf_inplace(a: Tensor, past: int) -> Tensor:
    """-inf where i0 > past + i1, written into `a`."""
    return over(a, lambda x: _masked(x, past, -np.inf))


def diag_mask_zero(a: Tensor, past: int) -> Tensor:
    """0 where i0 > past + i1, else a."""
    return like(a, lambda x: _masked(x, past, 0.0))


def diag_mask_zero_inplace(a: Tensor, past: int) -> Tensor:
    """0 where i0 > past + i1, written into `a`."""
    return over(a, lambda x: _masked(x, past, 0.0))


def _masked(x: Array, past: int, value: float) -> Array:
    rows, columns = x.shape[-2:]
    hidden = np.arange(columns)[None, :] > past + np.arange(rows)[:, None]
    return np.where(hidden, value, x)


def _mask(a: Tensor, mask: Tensor | int | None, max_bias: float) -> Tensor | None:
    if not isinstance(mask, Tensor):
        if mask or max_bias > 0:
            raise InvalidCase("soft_max_ext: a bias needs a mask")
        return None
    fits = mask.ne[0] == a.ne[0] and mask.ne[1] >= a.ne[1]
    demand(fits and a.ne[2] % mask.ne[2] == 0 and a.ne[3] % mask.ne[3] == 0, f"soft_max_ext: {mask} masks no {a}")
    return mask


def _rule(scale: float, max_bias: float) -> Callable[..., Array]:
    def rule(x: Array, mask: Array | None, sinks: Array | None) -> Array:
        z = scale * x
        if mask is not None:
            rows = tiled(mask[:, :, : x.shape[2]], x.shape)
            z += slopes(x.shape[1], max_bias)[:, None, None] * rows
        powers, total = powers_and_sum(z, sinks)
        out: Array = powers / total
        return out

    return rule


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "soft_max": lambda a: soft_max_ext(a, None, 1.0, 0.0),
    "soft_max_inplace": lambda a: soft_max_ext_inplace(a, None, 1.0, 0.0),
    "soft_max_ext": soft_max_ext,
    "soft_max_ext_inplace": soft_max_ext_inplace,
    "soft_max_add_sinks": soft_max_add_sinks,
    "soft_max_ext_back": soft_max_ext_back,
    "soft_max_ext_back_inplace": soft_max_ext_back_inplace,
    "diag_mask_inf": diag_mask_inf,
    "diag_mask_inf_inplace": diag_mask_inf_inplace,
    "diag_mask_zero": diag_mask_zero,
    "diag_mask_zero_inplace": diag_mask_zero_inplace,
}
