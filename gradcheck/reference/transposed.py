"""Adjoints of convolutions and of pooling: what each window holds is added up where the window lies."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.case import Shape
from gradcheck.model.errors import Unsupported
from gradcheck.reference.conv import image_windows
from gradcheck.reference.dtypes import Array
from gradcheck.reference.pool import is_maximum, lowest_outside, pool_windows
from gradcheck.reference.tensor import Tensor, demand, new, shape4
from gradcheck.reference.windows import Windows


def conv_transpose_1d(kernel: Tensor, signal: Tensor, s0: int, p0: int, d0: int) -> Tensor:
    """out[t s0 + k, o] = sum over channels c of signal[t, c] kernel[k, o, c], added up over t and k.

    kernel: [taps, out, in], signal: [steps, in], out: [(steps - 1) s0 + taps, out], f32
    """
    if p0 != 0 or d0 != 1:
        raise Unsupported("the NumPy reference has no conv_transpose_1d with padding or dilation, as ggml has none")
    demand(kernel.ne[2] == signal.ne[1] and kernel.ne[3] == 1, f"conv_transpose_1d: {kernel} and {signal}")
    demand(signal.ne[2] == signal.ne[3] == 1, f"conv_transpose_1d: {signal} is not one signal")
    length = (signal.ne[0] - 1) * s0 + kernel.ne[0]
    at = Windows((1, 1, length), (1, 1, kernel.ne[0]), (1, 1, s0))

    def rule(k: Array, x: Array) -> Array:
        return _spread(at, k[0][:, :, None, None, :], x[0][:, :, None, None, :])[:, :, 0, 0][None]

    return new("f32", (length, kernel.ne[1], 1, 1), rule, kernel, signal)


def conv_transpose_2d_p0(kernel: Tensor, image: Tensor, stride: int) -> Tensor:
    """The same for images, with one stride and no padding.

    kernel: [kw, kh, out, in], image: [w, h, in, n], out: [(w - 1) stride + kw, (h - 1) stride + kh, out, n], f32
    """
    demand(kernel.ne[3] == image.ne[2], f"conv_transpose_2d: {kernel} and {image} differ in their channels")
    wide, high = ((image.ne[i] - 1) * stride + kernel.ne[i] for i in range(2))
    at = Windows((1, high, wide), (1, kernel.ne[1], kernel.ne[0]), (1, stride, stride))

    def rule(k: Array, x: Array) -> Array:
        return _spread(at, k[:, :, None], x[:, :, None])[:, :, 0]

    return new("f32", (wide, high, kernel.ne[2], image.ne[3]), rule, kernel, image)


def col2im_1d(columns: Tensor, s0: int, channels: int, p0: int) -> Tensor:
    """out[t s0 + k - p0, o] = columns[k + taps o, t], added up over t and k; what lies outside of out is dropped.

    columns: [taps channels, steps], out: [(steps - 1) s0 + taps - 2 p0, channels], in the type of `columns`
    """
    demand(columns.ne[0] % channels == 0 and columns.ne[2] == columns.ne[3] == 1, f"col2im_1d: {columns}")
    taps, steps = columns.ne[0] // channels, columns.ne[1]
    length = (steps - 1) * s0 + taps - 2 * p0
    demand(taps > 0 and length > 0, f"col2im_1d: {columns} is cut down to {length}")
    at = Windows((1, 1, length), (1, 1, taps), (1, 1, s0), (0, 0, p0))

    def rule(x: Array) -> Array:
        room, by_tap = at.room(1, channels), x[0, 0].reshape(steps, channels, taps)
        for (_, _, tap), met in at.taps():
            room[:, :, *met] += by_tap[:, :, tap].T[None, :, None, None]
        return at.inside(room)[:, :, 0, 0][None]

    return new(columns.type, (length, channels, 1, 1), rule, columns)


def im2col_back(
    grad: Tensor, kernel: Tensor, ne: tuple[int, ...], s0: int, s1: int, p0: int, p1: int, d0: int, d1: int, is_2d: int
) -> Tensor:
    """The gradient of im2col's image, of shape `ne`: what the rows say of an element, added up; f32."""
    out = new("f32", shape4(*ne))
    at = image_windows(kernel, out, (s0, s1), (p0, p1), (d0, d1), is_2d)
    n, channels = (out.ne[3], out.ne[2]) if is_2d else (out.ne[2], out.ne[1])

    def rule(g: Array, _kernel: Array) -> Array:
        room, windows = at.room(n, channels), g.reshape(n, *at.counts, channels, *at.kernel)
        for (deep, row, column), met in at.taps():
            room[:, :, *met] += windows[..., deep, row, column].transpose(0, 4, 1, 2, 3)
        return at.inside(room).reshape(out.shape)

    demand(grad.elements == n * channels * _size(at), f"im2col_back: {grad} are no rows of {list(ne)}")
    return new("f32", out.ne, rule, grad, kernel)


def pool_2d_back(
    grad: Tensor, a: Tensor, kind: str | int, k0: int, k1: int, s0: int, s1: int, p0: float, p1: float
) -> Tensor:
    """The gradient of pool_2d(a): a window's goes to its largest element, the first one of several, or to all alike.

    grad: of pool_2d's result; out: the shape and type of `a`
    """
    at = pool_windows(a, (k1, k0), (s1, s0), (int(p1), int(p0)))
    largest = is_maximum(kind)
    demand(grad.ne == _pooled_ne(at, a), f"pool_2d_back: {grad} is no gradient of a pooled {a}")

    def rule(g: Array, x: Array) -> Array:
        room = at.room(*x.shape[:2])
        if largest:
            chosen = np.argmax(lowest_outside(at, x).reshape(*g.shape, -1), axis=-1)[:, :, None]
        for number, (_, met) in enumerate(at.taps()):
            room[:, :, *met] += np.where(chosen == number, g[:, :, None], 0.0) if largest else g[:, :, None] / (k0 * k1)
        return at.inside(room)[:, :, 0]

    return new(a.type, a.ne, rule, grad, a)


def _pooled_ne(at: Windows, a: Tensor) -> Shape:
    return (at.counts[2], at.counts[1], a.ne[2], a.ne[3])


def _size(at: Windows) -> int:
    """Elements of all windows on one channel."""
    return int(np.prod((*at.counts, *at.kernel)))


def _spread(at: Windows, kernel: Array, volumes: Array) -> Array:
    """Volumes [n, in, windows...] by the kernel [in, out, ...], added up: one product for each of its elements."""
    n, room = volumes.shape[0], at.room(volumes.shape[0], kernel.shape[1])
    flat = volumes.reshape(n, volumes.shape[1], -1)
    for (deep, row, column), met in at.taps():
        share = kernel[:, :, deep, row, column].T @ flat
        room[:, :, *met] += share.reshape(n, kernel.shape[1], *at.counts)
    return at.inside(room)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "conv_transpose_1d": conv_transpose_1d,
    "conv_transpose_2d_p0": conv_transpose_2d_p0,
    "col2im_1d": col2im_1d,
    "im2col_back": im2col_back,
    "pool_2d_back": pool_2d_back,
}
