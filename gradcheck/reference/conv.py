"""Convolutions: as columns and products, as ggml composes them, and directly."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.reference.dtypes import Array, type_name
from gradcheck.reference.matmul import mul_mat
from gradcheck.reference.tensor import Tensor, demand, new
from gradcheck.reference.views import FUNCTIONS as VIEWS
from gradcheck.reference.windows import Windows


def im2col(
    kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int, is_2d: int, kind: str
) -> Tensor:
    """Each window as a row: channel by channel, in it row by row; 0 where a window leaves the image.

    2D: image [w, h, channels, n], kernel [kw, kh, channels, ...], out [channels kh kw, ow, oh, n]
    1D: image [w, channels, n], kernel [kw, channels, ...], out [channels kw, ow, n]; s1, p1 and d1 are not read
    """
    axis = 2 if is_2d else 1
    demand(kernel.ne[axis] == image.ne[axis], f"im2col: {kernel} and {image} differ in their channels")
    demand(is_2d != 0 or image.ne[3] == 1, f"im2col: {image} is not a signal")
    at = image_windows(kernel, image, (s0, s1), (p0, p1), (d0, d1), is_2d)
    _, high, wide = at.counts
    row = math.prod(at.kernel) * image.ne[axis]
    ne = (row, wide, high, image.ne[3]) if is_2d else (row, wide, image.ne[2], 1)
    return new(type_name(kind), ne, lambda _, x: at.columns(as_volumes(x, is_2d)).reshape(ne[::-1]), kernel, image)


def image_windows(
    kernel: Tensor, image: Tensor, s: tuple[int, int], p: tuple[int, int], d: tuple[int, int], is_2d: int = 1
) -> Windows:
    """The windows of a kernel on an image, or on a signal, which is an image of height 1."""
    width, height = image.ne[0], image.ne[1] if is_2d else 1
    if is_2d:
        at = Windows(
            (1, height, width), (1, kernel.ne[1], kernel.ne[0]), (1, s[1], s[0]), (0, p[1], p[0]), (1, d[1], d[0])
        )
    else:
        at = Windows((1, 1, width), (1, 1, kernel.ne[0]), (1, 1, s[0]), (0, 0, p[0]), (1, 1, d[0]))
    demand(min(at.counts) > 0, f"{image} is too small for {kernel}")
    return at


def as_volumes(x: Array, is_2d: int) -> Array:
    """Images, or signals, as [n, channels, 1, height, width]."""
    return x[:, :, None] if is_2d else x[0][:, :, None, None]


def im2col_3d(
    kernel: Tensor,
    image: Tensor,
    channels: int,
    s0: int,
    s1: int,
    s2: int,
    p0: int,
    p1: int,
    p2: int,
    d0: int,
    d1: int,
    d2: int,
    kind: str,
) -> Tensor:
    """The same in three dimensions: image [w, h, d, channels n], kernel [kw, kh, kd, ...].

    out: [channels kd kh kw, ow, oh, od n]
    """
    at = _volume_windows(kernel, image, channels, (s2, s1, s0), (p2, p1, p0), (d2, d1, d0))
    deep, high, wide = at.counts
    ne = (math.prod(at.kernel) * channels, wide, high, deep * (image.ne[3] // channels))

    def rule(_kernel: Array, x: Array) -> Array:
        return at.columns(x.reshape(-1, channels, *x.shape[1:])).reshape(ne[::-1])

    return new(type_name(kind), ne, rule, kernel, image)


def _volume_windows(kernel: Tensor, image: Tensor, channels: int, *steps: tuple[int, int, int]) -> Windows:
    demand(channels > 0 and image.ne[3] % channels == 0, f"{image} has not {channels} channels")
    (width, height, depth), (kw, kh, kd) = image.ne[:3], kernel.ne[:3]
    at = Windows((depth, height, width), (kd, kh, kw), *steps)
    demand(min(at.counts) > 0, f"{image} is too small for {kernel}")
    return at


def conv_1d(kernel: Tensor, signal: Tensor, s0: int, p0: int, d0: int) -> Tensor:
    """Ggml makes it of im2col, in f16, and mul_mat: kernel [kw, in, out], signal [w, in, n], result [ow, out, n]."""
    rows = im2col(kernel, signal, s0, 0, p0, 0, d0, 0, 0, "f16")
    product = mul_mat(_flat(rows, 1), _flat(kernel, 2))
    made: Tensor = VIEWS["reshape_3d"](product, rows.ne[1], kernel.ne[2], rows.ne[2])
    return made


def conv_1d_dw(kernel: Tensor, signal: Tensor, s0: int, p0: int, d0: int) -> Tensor:
    """The same with a kernel [kw, 1, channels] for each channel: signal [w, channels], result [ow, channels]."""
    alone = VIEWS["reshape_4d"](signal, signal.ne[0], 1, signal.ne[1], signal.ne[2])
    product = mul_mat(im2col(kernel, alone, s0, 0, p0, 0, d0, 0, 0, "f16"), kernel)
    made: Tensor = VIEWS["reshape_3d"](product, product.ne[0], product.ne[2], 1)
    return made


def conv_2d(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """Ggml makes it of im2col, in the kernel's type, and mul_mat.

    kernel: [kw, kh, in, out], image: [w, h, in, n], result: [ow, oh, out, n]
    """
    rows = im2col(kernel, image, s0, s1, p0, p1, d0, d1, 1, kernel.type)
    product = mul_mat(_flat(rows, 1), _flat(kernel, 3))
    split = VIEWS["reshape_4d"](product, *rows.ne[1:], kernel.ne[3])
    return _swapped(split)


def conv_2d_dw(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """The same in f16, with a kernel [kw, kh, 1, channels] for each channel: result [ow, oh, channels, n]."""
    flat = VIEWS["reshape_4d"](kernel, kernel.ne[0], kernel.ne[1], 1, kernel.ne[2] * kernel.ne[3])
    alone = VIEWS["reshape_4d"](image, image.ne[0], image.ne[1], 1, image.ne[2] * image.ne[3])
    rows = im2col(flat, alone, s0, s1, p0, p1, d0, d1, 1, "f16")
    by_channel = VIEWS["reshape_4d"](rows, rows.ne[0], rows.ne[1] * rows.ne[2], image.ne[2], image.ne[3])
    product = mul_mat(VIEWS["reshape_4d"](flat, flat.ne[0] * flat.ne[1], 1, flat.ne[3], 1), by_channel)
    made: Tensor = VIEWS["reshape_4d"](product, rows.ne[1], rows.ne[2], image.ne[2], image.ne[3])
    return made


def conv_3d(
    kernel: Tensor,
    image: Tensor,
    channels: int,
    s0: int,
    s1: int,
    s2: int,
    p0: int,
    p1: int,
    p2: int,
    d0: int,
    d1: int,
    d2: int,
) -> Tensor:
    """Ggml makes it of im2col_3d, in the kernel's type, and mul_mat; shapes as in `conv_3d_direct`."""
    rows = im2col_3d(kernel, image, channels, s0, s1, s2, p0, p1, p2, d0, d1, d2, kernel.type)
    product = mul_mat(_flat(rows, 1), VIEWS["reshape_2d"](kernel, rows.ne[0], kernel.ne[3] // channels))
    n = image.ne[3] // channels
    split = VIEWS["reshape_4d"](product, rows.ne[1] * rows.ne[2], rows.ne[3] // n, n, product.ne[1])
    made: Tensor = VIEWS["reshape_4d"](_swapped(split), rows.ne[1], rows.ne[2], rows.ne[3] // n, n * product.ne[1])
    return made


def conv_2d_direct(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """Sum over a window of kernel times image: kernel [kw, kh, in, out], image [w, h, in, n], out [ow, oh, out, n]."""
    demand(kernel.ne[2] == image.ne[2], f"conv_2d: {kernel} and {image} differ in their channels")
    at = image_windows(kernel, image, (s0, s1), (p0, p1), (d0, d1))

    def rule(k: Array, x: Array) -> Array:
        return _convolved(at, k[:, :, None], x[:, :, None])[:, :, 0]

    return new("f32", (*at.counts[:0:-1], kernel.ne[3], image.ne[3]), rule, kernel, image)


def conv_2d_dw_direct(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """Each channel for itself: kernel [kw, kh, 1, channels], image [w, h, channels, n], out [ow, oh, channels, n]."""
    demand(kernel.ne[2] == 1 and kernel.ne[3] == image.ne[2], f"conv_2d_dw: {kernel} does not fit {image}")
    at = image_windows(kernel, image, (s0, s1), (p0, p1), (d0, d1))

    def rule(k: Array, x: Array) -> Array:
        padded, out = at.padded(x[:, :, None]), np.zeros((*x.shape[:2], *at.counts))
        for (_, row, column), met in at.taps():
            out += k[:, 0, row, column][:, None, None, None] * padded[:, :, *met]
        return out[:, :, 0]

    return new(image.type, (*at.counts[:0:-1], *image.ne[2:]), rule, kernel, image)


def conv_3d_direct(
    kernel: Tensor,
    image: Tensor,
    s0: int,
    s1: int,
    s2: int,
    p0: int,
    p1: int,
    p2: int,
    d0: int,
    d1: int,
    d2: int,
    channels: int,
    n: int,
    made: int,
) -> Tensor:
    """Sum over a window of kernel times image, in three dimensions, from so many channels to `made` of them.

    kernel: [kw, kh, kd, channels made], image: [w, h, d, channels n], out: [ow, oh, od, made n]
    """
    demand(kernel.ne[3] == channels * made and image.ne[3] == channels * n, f"conv_3d: {kernel} and {image}")
    at = _volume_windows(kernel, image, channels, (s2, s1, s0), (p2, p1, p0), (d2, d1, d0))

    def rule(k: Array, x: Array) -> Array:
        out = _convolved(at, k.reshape(made, channels, *k.shape[1:]), x.reshape(n, channels, *x.shape[1:]))
        return out.reshape(-1, *at.counts)

    return new("f32", (*at.counts[::-1], made * n), rule, kernel, image)


def _convolved(at: Windows, kernel: Array, volumes: Array) -> Array:
    """Kernel [out, in, ...] over volumes [n, in, ...]: one product of matrices for each element of the kernel."""
    n, out = volumes.shape[0], np.zeros((volumes.shape[0], kernel.shape[0], math.prod(at.counts)))
    padded = at.padded(volumes)
    for (deep, row, column), met in at.taps():
        out += kernel[:, :, deep, row, column] @ padded[:, :, *met].reshape(n, volumes.shape[1], -1)
    return out.reshape(n, kernel.shape[0], *at.counts)


def _swapped(a: Tensor) -> Tensor:
    """A copy with dimensions 2 and 3 in each other's place."""
    turned: Tensor = VIEWS["permute"](a, 0, 1, 3, 2)
    return new(turned.type, turned.ne, lambda x: x, turned)


def _flat(a: Tensor, dims: int) -> Tensor:
    """The first so many dimensions as one, the others as another."""
    made: Tensor = VIEWS["reshape_2d"](a, math.prod(a.ne[:dims]), math.prod(a.ne[dims:]))
    return made


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "im2col": im2col,
    "im2col_3d": im2col_3d,
    "conv_1d": conv_1d,
    "conv_1d_ph": lambda a, b, s, d: conv_1d(a, b, s, a.ne[0] // 2, d),
    "conv_1d_dw": conv_1d_dw,
    "conv_1d_dw_ph": lambda a, b, s, d: conv_1d_dw(a, b, s, a.ne[0] // 2, d),
    "conv_2d": conv_2d,
    "conv_2d_sk_p0": lambda a, b: conv_2d(a, b, a.ne[0], a.ne[1], 0, 0, 1, 1),
    "conv_2d_s1_ph": lambda a, b: conv_2d(a, b, 1, 1, a.ne[0] // 2, a.ne[1] // 2, 1, 1),
    "conv_2d_dw": conv_2d_dw,
    "conv_3d": conv_3d,
    "conv_2d_direct": conv_2d_direct,
    "conv_2d_dw_direct": conv_2d_dw_direct,
    "conv_3d_direct": conv_3d_direct,
}
