"""Attention in one op."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.binary import tiled
from gradcheck.reference.dtypes import Array
from gradcheck.reference.softmax import powers_and_sum, slopes
from gradcheck.reference.tensor import Tensor, demand, new


def flash_attn_ext(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | int | None, scale: float, max_bias: float, softcap: float
) -> Tensor:
    """softmax(scale q k^T + slope mask) v for each head: Vaswani et al. (2017), with the shapes of ggml.h.

    q: [head_k, queries, heads, n], k: [head_k, keys, heads of k, n], v: [head_v, keys, heads of v, n]
    mask: [keys, at least queries, ...], repeated over heads and n; slope: ALiBi's, see `slopes`
    softcap: where it is not 0, softcap tanh(scale q k^T / softcap) stands for scale q k^T (Gemma 2, 2024)
    out: [head_v, heads, queries, n], f32
    Query heads that follow one another share a head of k and v (grouped queries, Ainslie et al. 2023). With sinks
    (flash_attn_ext_add_sinks) exp(sinks[head]) joins the sum. Where all keys are masked the result is 0.
    """
    demand(q.ne[0] == k.ne[0] and k.ne[1] == v.ne[1], f"flash_attn_ext: {q}, {k} and {v} do not fit")
    demand(q.ne[3] == k.ne[3] == v.ne[3], f"flash_attn_ext: {q}, {k} and {v} differ in dimension 3")
    for kept in (k, v):
        demand(kept.ne[2] > 0 and q.ne[2] % kept.ne[2] == 0, f"flash_attn_ext: the heads of {q} cannot share {kept}")
    given = _mask(q, k, mask, max_bias)

    def rule(x: Array, keys: Array, values: Array, hidden: Array | None, sinks: Array | None) -> Array:
        scores = _by_group(x, keys.swapaxes(-1, -2))
        scores *= scale
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        if hidden is not None:
            scores += _bias(hidden, scores.shape, max_bias)
        powers, total = powers_and_sum(scores, sinks)
        attended = _by_group(powers, values) / np.where(total == 0, 1.0, total)
        return attended.transpose(0, 2, 1, 3)

    return new("f32", (v.ne[0], q.ne[2], q.ne[1], q.ne[3]), rule, q, k, v, given, None)


def flash_attn_ext_add_sinks(out: Tensor, sinks: Tensor | int | None) -> None:
    """Give an attention that was made before a sink for each head; None takes it away."""
    demand(len(out.sources) == 5, "flash_attn_ext_add_sinks: it is for the result of a flash_attn_ext")
    given = sinks if isinstance(sinks, Tensor) else None
    demand(given is None or given.ne[0] == out.ne[1], f"flash_attn_ext_add_sinks: {given} is no number for each head")
    out.sources = (*out.sources[:4], given)


def _by_group(rows: Array, matrices: Array) -> Array:
    """Rows @ matrices, where each head of `matrices` serves several heads of `rows`, one after the other."""
    n, heads, count, inner = rows.shape
    kept = matrices.shape[1]
    product: Array = rows.reshape(n, kept, heads // kept * count, inner) @ matrices
    return product.reshape(n, heads, count, matrices.shape[3])


def _bias(mask: Array, shape: tuple[int, ...], max_bias: float) -> Array:
    """What the mask adds to scores of a shape; it may still be broadcast to it."""
    n, heads = (have if have == 1 else want for have, want in zip(mask.shape[:2], shape[:2], strict=True))
    rows = tiled(mask[:, :, : shape[2]], (n, heads, *shape[2:]))
    return slopes(shape[1], max_bias)[:, None, None] * rows if max_bias > 0 else rows


def _mask(q: Tensor, k: Tensor, mask: Tensor | int | None, max_bias: float) -> Tensor | None:
    if not isinstance(mask, Tensor):
        if mask or max_bias > 0:
            raise InvalidCase("flash_attn_ext: a bias needs a mask")
        return None
    fits = mask.ne[0] == k.ne[1] and mask.ne[1] >= q.ne[1]
    spread = all(have and want % have == 0 for have, want in zip(mask.ne[2:], q.ne[2:], strict=True))
    demand(fits and spread, f"flash_attn_ext: {mask} masks no {q} and {k}")
    return mask


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "flash_attn_ext": flash_attn_ext,
    "flash_attn_ext_add_sinks": flash_attn_ext_add_sinks,
    # Precision changes how a device computes, not what.
    "flash_attn_ext_set_prec": lambda _out, _prec: None,
}
