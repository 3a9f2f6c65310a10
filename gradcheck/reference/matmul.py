"""Products of matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new


def mul_mat(a: Tensor, b: Tensor) -> Tensor:
    """out[i1, i0] = sum over k of a[i0, k] b[i1, k]: a [k, m], b [k, n], out [m, n], f32.

    In dimensions 2 and 3 each matrix of `a` serves that many matrices of `b`, one after the other.
    """
    demand(a.ne[0] == b.ne[0] and _spread(a, b), f"mul_mat: {a} and {b} do not fit")

    def rule(x: Array, y: Array) -> Array:
        return _batched(x.swapaxes(-1, -2), y)

    return new("f32", (a.ne[1], *b.ne[1:]), rule, a, b)


def out_prod(a: Tensor, b: Tensor) -> Tensor:
    """out[i1, i0] = sum over k of a[k, i0] b[k, i1]: a [m, k], b [n, k], out [m, n], f32; batches as in mul_mat."""
    demand(a.ne[1] == b.ne[1] and _spread(a, b), f"out_prod: {a} and {b} do not fit")

    def rule(x: Array, y: Array) -> Array:
        return _batched(x, y.swapaxes(-1, -2))

    return new("f32", (a.ne[0], b.ne[0], *b.ne[2:]), rule, a, b)


def mul_mat_id(experts: Tensor, b: Tensor, ids: Tensor) -> Tensor:
    """out[:, e, t] = experts[ids[e, t]] b[:, e mod b.ne[1], t].

    experts: [k, m, experts]; b: [k, used or 1, tokens]; ids: [used, tokens]; out: [m, used, tokens], f32
    """
    demand(experts.ne[0] == b.ne[0] and ids.ne[1] == b.ne[2], f"mul_mat_id: {experts}, {b} and {ids} do not fit")

    def rule(x: Array, y: Array, chosen: Array) -> Array:
        which = chosen[0, 0].astype(np.int64)
        rows = y[0][:, np.arange(which.shape[1]) % y.shape[2]]
        out = np.empty((*which.shape, x.shape[2]))
        # One expert after the other: a matrix for each token and expert would not fit into memory.
        for expert in np.unique(which):
            users = which == expert
            out[users] = rows[users] @ x[0, expert].T
        return out[None]

    return new("f32", (experts.ne[1], ids.ne[0], b.ne[2], 1), rule, experts, b, ids)


def _spread(a: Tensor, b: Tensor) -> bool:
    return all(have and want % have == 0 for have, want in zip(a.ne[2:], b.ne[2:], strict=True))


def _batched(x: Array, y: Array) -> Array:
    """Y @ x, where each matrix of x serves several of y, without copies of x."""
    outer, inner = (y.shape[axis] // x.shape[axis] for axis in (0, 1))
    groups = y.reshape(x.shape[0], outer, x.shape[1], inner, *y.shape[2:])
    product: Array = groups @ x[:, None, :, None]
    return product.reshape(*y.shape[:3], x.shape[3])


def _no_matter(_out: Tensor, _value: Any) -> None:
    """Precision and hints change how a device computes, not what."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mul_mat": mul_mat,
    "mul_mat_set_prec": _no_matter,
    "mul_mat_set_hint": _no_matter,
    "mul_mat_id": mul_mat_id,
    "out_prod": out_prod,
}
