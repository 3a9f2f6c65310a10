"""Padding, rolling, resizing, and the windows and relative positions of vision transformers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, new, over, shape4


def pad_ext(
    a: Tensor, lp0: int, rp0: int, lp1: int, rp1: int, lp2: int, rp2: int, lp3: int, rp3: int
) -> Tensor:  # fmt: skip
    """Zeros before and behind: lp<i> and rp<i> of them along dimension i."""
    return _padded(a, ((lp0, rp0), (lp1, rp1), (lp2, rp2), (lp3, rp3)), "constant")


def pad_ext_circular(
    a: Tensor, lp0: int, rp0: int, lp1: int, rp1: int, lp2: int, rp2: int, lp3: int, rp3: int
) -> Tensor:  # fmt: skip
    """The same with what stands at the other end: [x, y, z] is [z, x, y, z, x] with one on each side."""
    return _padded(a, ((lp0, rp0), (lp1, rp1), (lp2, rp2), (lp3, rp3)), "wrap")


def pad(a: Tensor, p0: int, p1: int, p2: int, p3: int) -> Tensor:
    """Zeros behind: p<i> of them along dimension i."""
    return pad_ext(a, 0, p0, 0, p1, 0, p2, 0, p3)


def pad_circular(a: Tensor, p0: int, p1: int, p2: int, p3: int) -> Tensor:
    """What stands at the beginning, once more behind: p<i> along dimension i."""
    return pad_ext_circular(a, 0, p0, 0, p1, 0, p2, 0, p3)


def pad_reflect_1d(a: Tensor, p0: int, p1: int) -> Tensor:
    """Each row mirrored at its first and last element: [a, b, c, d] is [b, a, b, c, d, c] with 1 and 1."""
    demand(0 <= p0 < a.ne[0] and 0 <= p1 < a.ne[0], f"pad_reflect_1d: {p0} and {p1} of {a}")
    return _padded(a, ((p0, p1), (0, 0), (0, 0), (0, 0)), "reflect")


def _padded(a: Tensor, widths: tuple[tuple[int, int], ...], mode: Any) -> Tensor:
    demand(min(min(pair) for pair in widths) >= 0, f"pad: {a} by less than nothing")
    ne = shape4(*(n + before + behind for n, (before, behind) in zip(a.ne, widths, strict=True)))
    return new(a.type, ne, lambda x: np.pad(x, widths[::-1], mode=mode), a)


def roll(a: Tensor, shift0: int, shift1: int, shift2: int, shift3: int) -> Tensor:
    """out[i + shift mod ne] = a[i] along each dimension."""
    return like(a, lambda x: np.roll(x, (shift3, shift2, shift1, shift0), axis=(0, 1, 2, 3)))


def win_part(a: Tensor, w: int) -> Tensor:
    """Squares of w x w pixels, with zeros behind where they do not fit (SAM, Kirillov et al. 2023).

    a: [channels, width, height], out: [channels, w, w, squares], row by row
    """
    demand(a.ne[3] == 1 and w > 0, f"win_part: {a} in squares of {w}")
    across, down = -(-a.ne[1] // w), -(-a.ne[2] // w)

    def rule(x: Array) -> Array:
        whole = np.pad(x[0], ((0, down * w - x.shape[1]), (0, across * w - x.shape[2]), (0, 0)))
        squares: Array = whole.reshape(down, w, across, w, -1).swapaxes(1, 2)
        return squares.reshape(down * across, w, w, -1)

    return new("f32", (a.ne[0], w, w, across * down), rule, a)


def win_unpart(a: Tensor, width: int, height: int, w: int) -> Tensor:
    """The image of width x height that win_part cut into these squares."""
    across, down = -(-width // w), -(-height // w)
    demand(a.ne[1] == a.ne[2] == w and a.ne[3] == across * down, f"win_unpart: {a} is no {width} x {height}")

    def rule(x: Array) -> Array:
        whole: Array = x.reshape(down, across, w, w, -1).swapaxes(1, 2).reshape(down * w, across * w, -1)
        return whole[None, :height, :width]

    return new("f32", (a.ne[0], width, height, 1), rule, a)


def get_rel_pos(a: Tensor, queries: int, keys: int) -> Tensor:
    """out[:, k, q] = a[:, q - k + keys - 1]: a row for each relative position (SAM); f16."""
    demand(queries == keys and a.ne[1] == 2 * keys - 1, f"get_rel_pos: {a} for {queries} and {keys} positions")
    relative = np.arange(queries)[:, None] - np.arange(keys)[None, :] + keys - 1
    return new("f16", (a.ne[0], keys, queries, 1), lambda x: x[:, 0][:, relative], a)


def add_rel_pos(a: Tensor, wide: Tensor, high: Tensor) -> Tensor:
    """Scores [keys^2, queries, n] with the positions of keys along an image's width and height added (SAM).

    out[.., h, w] = a[.., h, w] + high[.., h] + wide[.., w];  wide, high: [keys, queries' width, height, n]
    """
    return like(a, _rel_pos(a, wide, high), wide, high)


def add_rel_pos_inplace(a: Tensor, wide: Tensor, high: Tensor) -> Tensor:
    """The same, written into `a`."""
    return over(a, _rel_pos(a, wide, high), wide, high)


def _rel_pos(a: Tensor, wide: Tensor, high: Tensor) -> Callable[..., Array]:
    keys = wide.ne[0]
    fits = wide.ne == high.ne and keys * keys == a.ne[0] and wide.ne[1] * wide.ne[2] == a.ne[1]
    demand(fits and wide.ne[3] == a.ne[2] and a.ne[3] == 1, f"add_rel_pos: {a}, {wide} and {high} do not fit")

    def rule(x: Array, w: Array, h: Array) -> Array:
        scores: Array = x.reshape(*w.shape[:3], keys, keys) + h[..., :, None] + w[..., None, :]
        return scores.reshape(x.shape)

    return rule


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pad": pad,
    "pad_ext": pad_ext,
    "pad_circular": pad_circular,
    "pad_ext_circular": pad_ext_circular,
    "pad_reflect_1d": pad_reflect_1d,
    "roll": roll,
    "win_part": win_part,
    "win_unpart": win_unpart,
    "get_rel_pos": get_rel_pos,
    "add_rel_pos": add_rel_pos,
    "add_rel_pos_inplace": add_rel_pos_inplace,
}
