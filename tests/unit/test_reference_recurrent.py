"""The reference's recurrent ops against plain loops over tokens, heads and elements."""

import math

import numpy as np
from numpy.typing import NDArray

from tests.unit.test_reference_device import compute

RANDOM = np.random.default_rng(2)
Array = NDArray[np.float64]


def uniform(*shape: int) -> Array:
    return RANDOM.uniform(-1, 1, shape)


def positive(*shape: int) -> Array:
    return RANDOM.uniform(0, 1, shape)


def test_ssm_conv_is_a_convolution_of_each_channel() -> None:
    out = compute("out = ssm_conv(a, k)", a=[[1, 2, 3, 4], [1, 0, 0, 1]], k=[[10, 1], [5, 7]])
    assert out[0, 0].tolist() == [[12, 5], [23, 0], [34, 7]]
    two = compute("out = ssm_conv(a, k)", a=[[[1, 2]], [[3, 4]]], k=[[1, 1]])
    assert two.shape == (1, 2, 1, 1)
    assert two.ravel().tolist() == [3, 7]


def test_ssm_scan_by_hand() -> None:
    # One element: dt is softplus(log(e - 1)) = 1, A is -log(2): h = h/2 + x B.
    dt = [[[math.log(math.e - 1)]] * 2]
    out = compute(
        "out = ssm_scan(s, x, dt, a, b, c, i)",
        s=np.reshape([[4.0], [8.0]], (2, 1, 1, 1)), x=np.reshape([1.0, 2.0], (1, 2, 1, 1)), dt=dt,
        a=[[-math.log(2)]], b=np.reshape([3.0, 5.0], (1, 2, 1, 1)), c=np.reshape([1.0, 10.0], (1, 2, 1, 1)),
        i=("i32", [1]),
    )  # fmt: skip
    # 8/2 + 3 = 7, then 7/2 + 10 = 13.5
    assert np.allclose(out.ravel(), [7, 135, 13.5])


def test_ssm_scan_against_a_loop() -> None:
    n, tokens, heads, groups, dim, state = 2, 3, 4, 2, 3, 5
    s, x, dt = uniform(3, heads, dim, state), uniform(n, tokens, heads, dim), uniform(n, tokens, heads)
    b, c, ids = uniform(n, tokens, groups, state), uniform(n, tokens, groups, state), [2, 0]
    for decay in (-positive(heads, state), -positive(heads, 1)):
        y, last = np.empty_like(x), np.empty((n, heads, dim, state))
        for i, h, d in np.ndindex(n, heads, dim):
            memory, group = s[ids[i], h, d].copy(), h // (heads // groups)
            for t in range(tokens):
                step = math.log1p(math.exp(dt[i, t, h]))
                memory = memory * np.exp(step * decay[h]) + step * x[i, t, h, d] * b[i, t, group]
                y[i, t, h, d] = memory @ c[i, t, group]
            last[i, h, d] = memory
        out = compute(
            "out = ssm_scan(s, x, dt, a, b, c, i)", s=s, x=x, dt=dt, a=decay, b=b, c=c, i=("i32", ids)
        )  # fmt: skip
        assert np.allclose(out.ravel(), np.concatenate((y.ravel(), last.ravel())))


def test_linear_attentions_against_loops() -> None:
    n, each, heads, size = 2, 3, 2, 4
    k, v, r, a, b = (uniform(n * each, heads, size) for _ in range(5))
    w, u, s = positive(n * each, heads, size), uniform(heads, size), uniform(n, heads, size, size)
    state = s.reshape(n, -1)
    y6, y7, yg = (np.empty((n * each, heads, size)) for _ in range(3))
    s6, s7, sg = s.copy(), s.copy(), s.copy()
    for t, h in np.ndindex(n * each, heads):
        i = t // each
        kv = np.outer(k[t, h], v[t, h])
        y6[t, h] = r[t, h] @ (s6[i, h] + np.diag(u[h]) @ kv)
        s6[i, h] = np.diag(w[t, h]) @ s6[i, h] + kv
        sg[i, h] = np.diag(w[t, h]) @ sg[i, h] + kv
        yg[t, h] = 0.25 * r[t, h] @ sg[i, h]
        s7[i, h] = s7[i, h] @ (np.diag(w[t, h]) + np.outer(a[t, h], b[t, h])) + np.outer(v[t, h], k[t, h])
        y7[t, h] = s7[i, h] @ r[t, h]
    given = {"k": k, "v": v, "r": r, "w": w, "s": state}
    for text, y, last in (
        ("out = rwkv_wkv6(k, v, r, u, w, s)", y6, s6),
        ("out = gated_linear_attn(k, v, r, w, s, 0.25)", yg, sg),
        ("out = rwkv_wkv7(r, w, k, v, a, b, s)", y7, s7),
    ):
        out = compute(text, **given, u=u, a=a, b=b)
        assert out.shape == (1, 1, n * each + size * n, size * heads)
        assert np.allclose(out.ravel(), np.concatenate((y.ravel(), last.ravel()))), text


def test_the_delta_rule_stores_a_value_under_a_key() -> None:
    # With beta = 1 and no decay, reading a unit key gives the last value that was written under it.
    key = np.reshape([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], (1, 3, 1, 2))
    value = np.reshape([[5.0, 6.0], [7.0, 8.0], [1.0, 2.0]], (1, 3, 1, 2))
    out = compute(
        "out = gated_delta_net(k, k, v, g, b, s, 1)",
        k=key, v=value, g=np.zeros((1, 3, 1, 1)), b=np.ones((1, 3, 1, 1)), s=np.full((1, 1, 2, 2), 9.0),
    )[0, 0]  # fmt: skip
    assert np.allclose(out[:3] * math.sqrt(2), value.reshape(3, 2))
    assert np.allclose(out[3:], [[1, 7], [2, 8]])  # [value, key]


def test_gated_delta_net_against_a_loop() -> None:
    n, tokens, heads, shared, size, kept = 2, 3, 4, 2, 3, 2
    q, k, v = uniform(1, tokens, shared, size), uniform(n, tokens, shared, size), uniform(n, tokens, heads, size)
    beta, first = positive(n, tokens, heads, 1), uniform(n, heads, size, size)
    for gate in (-positive(n, tokens, heads, 1), -positive(n, tokens, heads, size)):
        y, states = np.empty((n, tokens, heads, size)), np.empty((tokens, n, heads, size, size))
        for i, h in np.ndindex(n, heads):
            memory = first[i, h]
            for t in range(tokens):
                key = k[i, t, h % shared]
                memory = memory * np.exp(gate[i, t, h])
                memory = memory + beta[i, t, h] * np.outer(v[i, t, h] - memory @ key, key)
                y[i, t, h] = memory @ q[0, t, h % shared] / math.sqrt(size)
                states[tokens - 1 - t, i, h] = memory
        out = compute(f"out = gated_delta_net(q, k, v, g, b, s, {kept})", q=q, k=k, v=v, g=gate, b=beta, s=first)
        assert out.shape == (1, 1, tokens * n + kept * size * n, size * heads)
        assert np.allclose(out.ravel(), np.concatenate((y.ravel(), states[:kept].ravel())))


def test_states_that_no_token_made_are_not_written() -> None:
    ones = np.ones((1, 1, 1, 1))
    out = compute("out = gated_delta_net(a, a, a, g, a, a, 3)", a=ones, g=0 * ones).ravel()
    assert np.allclose(out[:2], [1, 1])
    assert np.isnan(out[2:]).all()
