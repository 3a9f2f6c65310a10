"""Images in another size. Dimensions 0 and 1 are resampled, the others repeat or drop whole images."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Shape
from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, new

_MODES = {"SCALE_MODE_NEAREST": 0, "SCALE_MODE_BILINEAR": 1, "SCALE_MODE_BICUBIC": 2}
_NEAREST, _BILINEAR, _BICUBIC = _MODES.values()
_ALIGN_CORNERS, _ANTIALIAS = 1 << 8, 1 << 9
#: Enum words of this family; a graph adds flags to modes, so they are numbers there.
WORDS = {**_MODES, "SCALE_FLAG_ALIGN_CORNERS": _ALIGN_CORNERS, "SCALE_FLAG_ANTIALIAS": _ANTIALIAS}
#: Keys' parameter (1981), as PyTorch has it and ggml after it.
_KEYS = -0.75


def upscale(a: Tensor, factor: int, mode: int) -> Tensor:
    """Dimensions 0 and 1 so many times as large, as `interpolate` does it."""
    return interpolate(a, a.ne[0] * factor, a.ne[1] * factor, a.ne[2], a.ne[3], mode)


def interpolate(a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int, mode: int) -> Tensor:
    """The tensor in another size, as PyTorch's interpolate does it, which ggml names as its model.

    Output o of n lies at (o + 1/2) m/n - 1/2 of the m inputs; with SCALE_FLAG_ALIGN_CORNERS at o (m-1)/(n-1).
    nearest: input floor(o m/n), which is also what dimensions 2 and 3 take in every mode
    bilinear: the neighbours by 1 - distance; with SCALE_FLAG_ANTIALIAS and n < m all inputs less than m/n away,
        by 1 - distance n/m, in shares of their sum
    bicubic: the four neighbours by Keys' cubic convolution (1981) with a = -3/4
    Beyond an edge the edge's element is taken (with antialias: nothing).
    """
    kind, flags = mode & 0xFF, mode & ~0xFF
    if kind not in _MODES.values():
        raise InvalidCase(f"interpolate: there is no mode {kind}")
    if flags & _ANTIALIAS and (kind != _BILINEAR or flags & _ALIGN_CORNERS):
        raise Unsupported("the NumPy reference has antialias for plain bilinear interpolation alone, as ggml does")
    ne: Shape = (ne0, ne1, ne2, ne3)
    demand(min(ne) > 0 and min(a.ne) > 0, f"interpolate: {a} to {list(ne)}")

    def rule(x: Array) -> Array:
        images = x[_nearest(ne3, x.shape[0])][:, _nearest(ne2, x.shape[1])]
        if kind == _NEAREST:
            nearest: Array = images[:, :, _nearest(ne1, x.shape[2])][..., _nearest(ne0, x.shape[3])]
            return nearest
        across, down = (_weights(kind, flags, want, have) for want, have in ((ne0, x.shape[3]), (ne1, x.shape[2])))
        resampled: Array = down @ images @ across.T
        return resampled

    return new(a.type, ne, rule, a)


def _nearest(want: int, have: int) -> NDArray[np.int64]:
    return np.arange(want) * have // want


def _weights(kind: int, flags: int, want: int, have: int) -> Array:
    """How much of each input every output takes: [want, have]."""
    if flags & _ANTIALIAS:
        reach = max(1.0, have / want)
        near = np.arange(have)[None, :] - _places(flags, want, have)[:, None]
        shares = np.maximum(0.0, 1 - np.abs(near) / reach)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
    place = _places(flags, want, have)
    first = np.floor(place).astype(np.int64)
    weights = np.zeros((want, have))
    for neighbour in (-1, 0, 1, 2) if kind == _BICUBIC else (0, 1):
        distance = np.abs(place - (first + neighbour))
        share = _cubic(distance) if kind == _BICUBIC else 1 - distance
        weights[np.arange(want), np.clip(first + neighbour, 0, have - 1)] += share
    return weights


def _places(flags: int, want: int, have: int) -> Array:
    output = np.arange(want, dtype=np.float64)
    if flags & _ALIGN_CORNERS:
        # A single output, or a single input, has no scale: all outputs lie at the first input.
        return output * (have - 1) / (want - 1) if want > 1 else output
    return (output + 0.5) * have / want - 0.5


def _cubic(distance: Array) -> Array:
    """Keys' kernel: (a+2) d^3 - (a+3) d^2 + 1 up to 1, a d^3 - 5a d^2 + 8a d - 4a from there to 2."""
    a, d = _KEYS, distance
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "upscale": upscale,
    "upscale_ext": interpolate,
    "interpolate": interpolate,
}
