"""Windows of images and signals as columns, for convolutions as products."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import Unsupported
from gradcheck.reference.dtypes import Array, type_name
from gradcheck.reference.matmul import mul_mat
from gradcheck.reference.tensor import Tensor, demand, new
from gradcheck.reference.views import FUNCTIONS as VIEWS

#: Depth, height, width: NumPy's order.
Triple = tuple[int, int, int]


def places(size: int, kernel: int, stride: int, pad: int, dilation: int) -> int:
    """How many windows there are along one axis: (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1."""
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def columns(x: Array, kernel: Triple, stride: Triple, pad: Triple, dilation: Triple) -> Array:
    """The windows of x [n, channels, depth, height, width], with zeros around it.

    Returns [n, depth, height, width of the result, channels, depth, height, width of the kernel].
    """
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    axes = []
    for axis in range(3):
        count = places(x.shape[2 + axis], kernel[axis], stride[axis], pad[axis], dilation[axis])
        at = stride[axis] * np.arange(count)[:, None] + dilation[axis] * np.arange(kernel[axis])[None, :]
        form = [1] * 6
        form[axis], form[3 + axis] = at.shape
        axes.append(at.reshape(form))
    return padded[:, :, axes[0], axes[1], axes[2]].transpose(0, 2, 3, 4, 1, 5, 6, 7)


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
    # A signal is an image of height 1; then NumPy's axis 0 is empty and 1 counts the signals.
    size, stride, pad, dilation = (kernel.ne[1], s1, p1, d1) if is_2d else (1, 1, 0, 1)
    wide = places(image.ne[0], kernel.ne[0], s0, p0, d0)
    high = places(image.ne[1] if is_2d else 1, size, stride, pad, dilation)
    demand(wide > 0 and high > 0, f"im2col: {image} is too small for {kernel}")
    row = kernel.ne[0] * size * image.ne[axis]
    ne = (row, wide, high, image.ne[3]) if is_2d else (row, wide, image.ne[2], 1)

    def rule(_kernel: Array, x: Array) -> Array:
        volume = x[:, :, None] if is_2d else x[0][:, :, None, None]
        windows = columns(volume, (1, size, kernel.ne[0]), (1, stride, s0), (0, pad, p0), (1, dilation, d0))
        return windows.reshape(ne[::-1])

    return new(type_name(kind), ne, rule, kernel, image)


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
    demand(image.ne[3] % channels == 0, f"im2col_3d: {image} has not {channels} channels")
    size = (kernel.ne[2], kernel.ne[1], kernel.ne[0])
    stride, pad, dilation = (s2, s1, s0), (p2, p1, p0), (d2, d1, d0)
    out = [places(image.ne[2 - i], size[i], stride[i], pad[i], dilation[i]) for i in range(3)]
    demand(min(out) > 0, f"im2col_3d: {image} is too small for {kernel}")
    ne = (math.prod(size) * channels, out[2], out[1], out[0] * (image.ne[3] // channels))

    def rule(_kernel: Array, x: Array) -> Array:
        return columns(x.reshape(-1, channels, *x.shape[1:]), size, stride, pad, dilation).reshape(ne[::-1])

    return new(type_name(kind), ne, rule, kernel, image)


def conv_1d(kernel: Tensor, signal: Tensor, s0: int, p0: int, d0: int) -> Tensor:
    """Ggml makes it of im2col, in f16, and mul_mat: kernel [kw, in, out], signal [w, in, n], result [ow, out, n]."""
    rows = im2col(kernel, signal, s0, 0, p0, 0, d0, 0, 0, "f16")
    product = mul_mat(_flat(rows, 1), _flat(kernel, 2))
    made: Tensor = VIEWS["reshape_3d"](product, rows.ne[1], kernel.ne[2], rows.ne[2])
    return made


def conv_2d(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """Ggml makes it of im2col, in the kernel's type, and mul_mat.

    kernel: [kw, kh, in, out], image: [w, h, in, n], result: [ow, oh, out, n]
    """
    rows = im2col(kernel, image, s0, s1, p0, p1, d0, d1, 1, kernel.type)
    product = mul_mat(_flat(rows, 1), _flat(kernel, 3))
    split = VIEWS["reshape_4d"](product, *rows.ne[1:], kernel.ne[3])
    turned = VIEWS["permute"](split, 0, 1, 3, 2)
    return new(turned.type, turned.ne, lambda x: x, turned)


def conv_2d_direct(kernel: Tensor, image: Tensor, s0: int, s1: int, p0: int, p1: int, d0: int, d1: int) -> Tensor:
    """Sum over a window of kernel times image: kernel [kw, kh, in, out], image [w, h, in, n], out [ow, oh, out, n]."""
    demand(kernel.ne[2] == image.ne[2], f"conv_2d: {kernel} and {image} differ in their channels")
    wide = places(image.ne[0], kernel.ne[0], s0, p0, d0)
    high = places(image.ne[1], kernel.ne[1], s1, p1, d1)
    if wide <= 0 or high <= 0:
        # ggml rounds the size towards 0, so that one output is left.
        raise Unsupported("the NumPy reference has no conv_2d with a kernel larger than the padded image")

    def rule(k: Array, x: Array) -> Array:
        windows = columns(x[:, :, None], (1, *k.shape[2:]), (1, s1, s0), (0, p1, p0), (1, d1, d0))
        out: Array = np.einsum("nhwcij,ocij->nohw", windows[:, 0, :, :, :, 0], k)
        return out

    return new("f32", (wide, high, kernel.ne[3], image.ne[3]), rule, kernel, image)


def _flat(a: Tensor, dims: int) -> Tensor:
    """The first so many dimensions as one, the others as another."""
    made: Tensor = VIEWS["reshape_2d"](a, math.prod(a.ne[:dims]), math.prod(a.ne[dims:]))
    return made


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "im2col": im2col,
    "im2col_3d": im2col_3d,
    "conv_1d": conv_1d,
    "conv_1d_ph": lambda a, b, s, d: conv_1d(a, b, s, a.ne[0] // 2, d),
    "conv_2d": conv_2d,
    "conv_2d_sk_p0": lambda a, b: conv_2d(a, b, a.ne[0], a.ne[1], 0, 0, 1, 1),
    "conv_2d_s1_ph": lambda a, b: conv_2d(a, b, 1, 1, a.ne[0] // 2, a.ne[1] // 2, 1, 1),
    "conv_2d_direct": conv_2d_direct,
}
