"""Linear attention and state space models: a state for each head and sequence that every token updates.

Tokens are taken one after the other; all heads, sequences and elements of a state together.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new
from gradcheck.reference.unary import softplus


def ssm_conv(signal: Tensor, kernel: Tensor) -> Tensor:
    """out[c, t, s] = sum over j of signal[t + j, c, s] kernel[j, c]: each channel for itself (Gu and Dao 2023).

    signal: [taps - 1 + tokens, channels, n], kernel: [taps, channels], out: [channels, tokens, n], f32
    """
    taps, channels = kernel.ne[:2]
    tokens = signal.ne[0] - taps + 1
    demand(signal.ne[1] == channels and signal.ne[3] == 1 and tokens >= 0, f"ssm_conv: {signal} and {kernel}")

    def rule(x: Array, c: Array) -> Array:
        out = np.zeros((1, x.shape[1], channels, tokens))
        for tap in range(taps):
            out += x[..., tap : tap + tokens] * c[..., tap, None].reshape(channels, 1)
        return out.swapaxes(-1, -2)

    return new("f32", (channels, tokens, signal.ne[2], 1), rule, signal, kernel)


def ssm_scan(s: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, ids: Tensor) -> Tensor:
    """The selective scan of Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024).

    With d = softplus(dt): h[t] = exp(d A) h[t-1] + d x B^T,  y[t] = h[t] C,  with h[-1] = s[ids[sequence]].
    s: [state, dim, heads, ...], x: [dim, heads, tokens, n], dt: [heads, tokens, n], ids: [n]
    A: [state, heads], or [1, heads] for one decay a head; B, C: [state, groups, tokens, n], a group of B and C
    serving several heads, one after the other
    out: y in x's order, then the last h of each sequence, as one row
    """
    state, dim, heads = s.ne[:3]
    tokens, n = x.ne[2:]
    demand(x.ne[:2] == (dim, heads) and dt.ne == (heads, tokens, n, 1), f"ssm_scan: {s}, {x} and {dt} do not fit")
    demand(b.ne == c.ne and b.ne[0] == state and b.ne[2:] == (tokens, n), f"ssm_scan: {b} and {c} do not fit {x}")
    demand(a.ne[0] in (1, state) and a.ne[1] == heads and heads % b.ne[1] == 0, f"ssm_scan: {a} and {b} for {s}")

    def rule(first: Array, xs: Array, dts: Array, decay: Array, bs: Array, cs: Array, which: Array) -> Array:
        h = first[which.ravel().astype(np.int64)]  # [n, heads, dim, state]
        step = softplus(dts[0])  # [n, tokens, heads]
        shared = heads // bs.shape[2]
        y = np.empty((n, tokens, heads, dim))
        for t in range(tokens):
            d = step[:, t, :, None, None]
            into, out_of = (np.repeat(z[:, t], shared, axis=1) for z in (bs, cs))
            h = h * np.exp(d * decay[0, 0][:, None, :]) + (d * xs[:, t, :, :, None]) * into[:, :, None, :]
            y[:, t] = (h @ out_of[..., None])[..., 0]
        return np.concatenate((y.ravel(), h.ravel()))[None, None, None]

    size = x.elements + state * dim * heads * ids.ne[0]
    return new("f32", (size, 1, 1, 1), rule, s, x, dt, a, b, c, ids)


def rwkv_wkv6(k: Tensor, v: Tensor, r: Tensor, first: Tensor, decay: Tensor, state: Tensor) -> Tensor:
    """RWKV-6 (Peng et al. 2024): y[t] = r (S + diag(u) k v^T), S = diag(w) S + k v^T.

    u: `first`, for the token itself; w: `decay`. Shapes as in `_linear`; S is [key, value]
    """

    def step(s: Array, token: tuple[Array, ...], u: Array) -> tuple[Array, Array]:
        kt, vt, rt, wt = token
        kv = kt[..., None] * vt[..., None, :]
        seen = rt[..., None, :] @ (s + u.reshape(kt.shape[1:])[..., None] * kv)
        return seen[..., 0, :], wt[..., None] * s + kv

    return _linear("rwkv_wkv6", step, (k, v, r, decay), state, first)


def gated_linear_attn(k: Tensor, v: Tensor, q: Tensor, gate: Tensor, state: Tensor, scale: float) -> Tensor:
    """Gated linear attention (Yang et al. 2023): S = diag(g) S + k v^T, y[t] = scale q S. Shapes as in `_linear`."""

    def step(s: Array, token: tuple[Array, ...]) -> tuple[Array, Array]:
        kt, vt, qt, gt = token
        s = gt[..., None] * s + kt[..., None] * vt[..., None, :]
        return scale * (qt[..., None, :] @ s)[..., 0, :], s

    return _linear("gated_linear_attn", step, (k, v, q, gate), state)


def rwkv_wkv7(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, state: Tensor) -> Tensor:
    """RWKV-7 (Peng et al. 2025): S = S (diag(w) + a b^T) + v k^T, y[t] = S r. Shapes as in `_linear`.

    Here S is [value, key].
    """

    def step(s: Array, token: tuple[Array, ...]) -> tuple[Array, Array]:
        rt, wt, kt, vt, at, bt = token
        s = wt[..., None, :] * s + (s @ at[..., None]) * bt[..., None, :] + vt[..., None] * kt[..., None, :]
        return (s @ rt[..., None])[..., 0], s

    return _linear("rwkv_wkv7", step, (r, w, k, v, a, b), state)


def _linear(
    name: str, step: Callable[..., tuple[Array, Array]], tokens: tuple[Tensor, ...], state: Tensor, *more: Tensor
) -> Tensor:
    """What the attentions with a square state share.

    tokens: each [size, heads, tokens of all sequences]; state: [size size heads, sequences]
    out: [size heads, tokens + size sequences], f32: a row of y for each token, then the last states
    """
    size, heads, count = tokens[0].ne[:3]
    n = state.ne[1]
    demand(all(one.ne == tokens[0].ne for one in tokens), f"{name}: {', '.join(map(str, tokens))} differ")
    demand(state.elements == size * size * heads * n and n > 0 and count % n == 0, f"{name}: {state} and {tokens[0]}")

    def rule(*arrays: Array) -> Array:
        given = [array.reshape(n, count // n, heads, size) for array in arrays[: len(tokens)]]
        s = arrays[len(tokens)].reshape(n, heads, size, size)
        y = np.empty((n, count // n, heads, size))
        for t in range(count // n):
            y[:, t], s = step(s, tuple(array[:, t] for array in given), *arrays[len(tokens) + 1 :])
        return np.concatenate((y.reshape(-1, size * heads), s.reshape(-1, size * heads)))[None, None]

    return new("f32", (size * heads, count + size * n, 1, 1), rule, *tokens, state, *more)


def gated_delta_net(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, kept: int) -> Tensor:
    """The gated delta rule (Yang, Kautz and Hatamizadeh 2024), with the shapes of ggml.h.

    S = S diag(exp(g));  S = S + beta (v - S k) k^T;  y[t] = S q / sqrt(size)
    q, k: [size, heads of q, tokens, ...], v: [size, heads, tokens, n]; beta, g: [1, heads, tokens, n], or g with a
    value for each element of a key (Kimi Delta Attention 2025); state: [size, size, heads, n], S as [value, key]
    out: [size heads, tokens n + kept size n], f32: y, then the last `kept` states, the latest first. Where there are
    fewer tokens than that, what is left over is not written (NaN here).
    Head h of v takes head h mod (heads of q) of q and k; sequences share them one after the other.
    """
    size, heads, tokens, n = v.ne
    demand(q.ne[0] == k.ne[0] == size and q.ne[2] == k.ne[2] == tokens, f"gated_delta_net: {q}, {k} and {v}")
    for part in (q, k):
        demand(heads % part.ne[1] == 0 and n % part.ne[3] == 0, f"gated_delta_net: {part} cannot be shared by {v}")
    demand(g.ne[0] in (1, size) and g.ne[1:] == v.ne[1:], f"gated_delta_net: {g} does not fit {v}")
    demand(beta.ne == (1, *v.ne[1:]), f"gated_delta_net: {beta} does not fit {v}")
    demand(state.elements == size * size * heads * n and kept >= 1, f"gated_delta_net: {state}, {kept} states kept")

    def rule(qs: Array, ks: Array, vs: Array, gs: Array, betas: Array, first: Array) -> Array:
        qs, ks = (_to_heads(part, n, heads) for part in (qs, ks))
        s = first.reshape(n, heads, size, size)
        y = np.empty((n, tokens, heads, size))
        snapshots = np.full((kept, n, heads, size, size), np.nan)
        for t in range(tokens):
            s = s * np.exp(gs[:, t])[:, :, None, :]
            key = ks[:, t, :, :, None]
            s = s + betas[:, t][..., None] * (vs[:, t, :, :, None] - s @ key) * key.swapaxes(-1, -2)
            y[:, t] = (s @ qs[:, t, :, :, None])[..., 0] / math.sqrt(size)
            if tokens - 1 - t < kept:
                snapshots[tokens - 1 - t] = s
        return np.concatenate((y.ravel(), snapshots.ravel())).reshape(1, 1, -1, size * heads)

    return new("f32", (size * heads, tokens * n + kept * size * n, 1, 1), rule, q, k, v, g, beta, state)


def _to_heads(part: Array, n: int, heads: int) -> Array:
    """Queries or keys [sequences, tokens, heads, size] for each sequence and head of v."""
    tiled = np.tile(part, (1, 1, heads // part.shape[2], 1))
    return np.repeat(tiled, n // part.shape[0], axis=0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ssm_conv": ssm_conv,
    "ssm_scan": ssm_scan,
    "rwkv_wkv6": rwkv_wkv6,
    "rwkv_wkv7": rwkv_wkv7,
    "gated_linear_attn": gated_linear_attn,
    "gated_delta_net": gated_delta_net,
}
