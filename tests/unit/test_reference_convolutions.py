"""The reference's convolutions: against sums that are written out, and each adjoint against what it is adjoint to."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.windows import Windows
from tests.unit.test_reference_device import compute

RANDOM = np.random.default_rng(3)
Array = NDArray[np.float64]


def uniform(*shape: int) -> Array:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32).astype(np.float64)


def convolved(x: Array, k: Array, stride: int, pad: int, dilation: int) -> Array:
    """A sum over every element of the kernel, one output after the other: x [n, in, ...], k [out, in, ...]."""
    dims = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *[(pad, pad)] * dims])
    sizes = [(padded.shape[2 + i] - dilation * (k.shape[2 + i] - 1) - 1) // stride + 1 for i in range(dims)]
    out = np.zeros((x.shape[0], k.shape[0], *sizes))
    for at in np.ndindex(*sizes):
        window = tuple(
            slice(stride * i, stride * i + dilation * (size - 1) + 1, dilation)
            for i, size in zip(at, k.shape[2:], strict=True)
        )
        seen = padded[:, None, :, *window] * k[None]
        out[:, :, *at] = seen.sum(axis=tuple(range(2, seen.ndim)))
    return out


@pytest.mark.parametrize(("stride", "pad", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 2, 1)])
def test_direct_convolutions(stride: int, pad: int, dilation: int) -> None:
    x, k = uniform(2, 3, 6, 7), uniform(4, 3, 2, 3)
    want = convolved(x, k, stride, pad, dilation)
    settings = f"{stride}, {stride}, {pad}, {pad}, {dilation}, {dilation}"
    assert np.allclose(compute(f"out = conv_2d_direct(k, x, {settings})", k=k, x=x), want)
    assert np.allclose(compute(f"out = conv_2d(k, x, {settings})", k=k, x=x), want)
    volume, cube = uniform(2, 3, 4, 5, 6), uniform(4, 3, 2, 2, 2)
    want = convolved(volume, cube, stride, pad, dilation).reshape(
        8, *convolved(volume, cube, stride, pad, dilation).shape[2:]
    )
    steps = ", ".join(f"{v}, {v}, {v}" for v in (stride, pad, dilation))
    given = {"k": cube.reshape(12, 2, 2, 2), "x": volume.reshape(6, 4, 5, 6)}
    assert np.allclose(compute(f"out = conv_3d_direct(k, x, {steps}, 3, 2, 4)", **given), want)
    assert np.allclose(compute(f"out = conv_3d(k, x, 3, {steps})", **given), want)


def test_channels_for_themselves() -> None:
    x, k = uniform(2, 3, 5, 6), uniform(3, 1, 2, 3)
    want = np.concatenate([convolved(x[:, c : c + 1], k[c : c + 1], 1, 1, 1) for c in range(3)], axis=1)
    assert np.allclose(compute("out = conv_2d_dw_direct(k, x, 1, 1, 1, 1, 1, 1)", k=k, x=x), want)
    halves = compute("out = conv_2d_dw(k, x, 1, 1, 1, 1, 1, 1)", k=("f16", k), x=x)
    assert np.allclose(halves, want, atol=5e-3)
    assert not np.array_equal(halves, want)  # the columns are f16 by definition
    line, taps = uniform(3, 6), uniform(3, 1, 2)
    want = np.stack([np.convolve(line[c], taps[c, 0, ::-1], mode="valid") for c in range(3)])
    assert np.allclose(compute("out = conv_1d_dw(k, x, 1, 0, 1)", k=taps, x=line)[0, 0], want, atol=5e-3)


def test_a_kernel_that_sticks_out_by_less_than_a_stride_is_used_once() -> None:
    # 3 pixels and a kernel of 4: (3 - 4) / 2 + 1 is 1 where halves are rounded towards 0.
    out = compute("out = conv_2d_direct(k, x, 2, 2, 0, 0, 1, 1)", k=np.ones((1, 1, 1, 4)), x=np.ones((1, 1, 1, 3)))
    assert out.ravel().tolist() == [3]
    with pytest.raises(InvalidCase, match="too small"):
        compute("out = conv_2d_direct(k, x, 1, 1, 0, 0, 1, 1)", k=np.ones((1, 1, 1, 4)), x=np.ones((1, 1, 1, 3)))


def test_transposed_convolutions_by_hand() -> None:
    out = compute("out = conv_transpose_1d(k, x, 2, 0, 1)", k=[[[1, 10, 100]]], x=[[1, 2]])
    assert out.ravel().tolist() == [1, 10, 102, 20, 200]
    gap = compute("out = conv_transpose_1d(k, x, 3, 0, 1)", k=[[[1, 10]]], x=[[1, 2]])
    assert gap.ravel().tolist() == [1, 10, 0, 2, 20]
    out = compute("out = conv_transpose_2d_p0(k, x, 1)", k=[[[[1, 2], [3, 4]]]], x=[[[[1, 10]]]])
    assert out[0, 0].tolist() == [[1, 12, 20], [3, 34, 40]]
    with pytest.raises(Unsupported, match="padding"):
        compute("out = conv_transpose_1d(k, x, 2, 1, 1)", k=[[[1, 10, 100]]], x=[[1, 2]])


def test_transposed_convolutions_are_adjoint_to_convolutions() -> None:
    """<conv(x), y> = <x, transposed(y)> for every x and y."""
    for stride in (1, 2):
        k, y = uniform(4, 3, 2, 3), uniform(2, 4, 3, 4)  # from 3 to 4 channels
        x = uniform(2, 3, 2 * stride + 2, 3 * stride + 3)
        back = compute(f"out = conv_transpose_2d_p0(k, y, {stride})", k=k, y=y)
        assert back.shape == x.shape
        assert np.sum(convolved(x, k, stride, 0, 1) * y) == pytest.approx(np.sum(x * back))


def test_columns_become_a_signal() -> None:
    # Two taps for each of two channels, three steps apart by one: what overlaps is added up.
    columns = [[1, 2, 10, 20], [3, 4, 30, 40], [5, 6, 50, 60]]
    out = compute("out = col2im_1d(a, 1, 2, 0)", a=columns)
    assert out[0, 0].tolist() == [[1, 5, 9, 6], [10, 50, 90, 60]]
    assert compute("out = col2im_1d(a, 1, 2, 1)", a=columns)[0, 0].tolist() == [[5, 9], [50, 90]]
    assert compute("out = col2im_1d(a, 3, 2, 0)", a=columns[:2])[0, 0].tolist()[0] == [1, 2, 0, 3, 4]


@pytest.mark.parametrize("settings", ["1, 1, 0, 0, 1, 1", "2, 1, 1, 2, 1, 2", "1, 3, 2, 0, 2, 1"])
def test_im2col_back_is_adjoint_to_im2col(settings: str) -> None:
    k, x = np.zeros((1, 2, 2, 3)), uniform(2, 2, 6, 7)
    rows = compute(f'out = im2col(k, x, {settings}, 1, "f32")', k=k, x=x)
    g = uniform(*rows.shape)
    back = compute(f"out = im2col_back(g, k, [7, 6, 2, 2], {settings}, 1)", k=k, g=g)
    assert np.sum(rows * g) == pytest.approx(np.sum(x * back))
    signal = uniform(1, 2, 2, 7)
    rows = compute(f'out = im2col(k, x, {settings}, 0, "f32")', k=np.zeros((1, 2, 3)), x=signal)
    g = uniform(*rows.shape)
    back = compute(f"out = im2col_back(g, k, [7, 2, 2, 1], {settings}, 0)", k=np.zeros((1, 2, 3)), g=g)
    assert np.sum(rows * g) == pytest.approx(np.sum(signal * back))


def test_pooling_gives_its_gradient_to_the_first_maximum_or_to_all() -> None:
    a, g = [[5.0, 5.0, 1.0, 2.0]], [[3.0, 4.0]]
    assert compute("out = pool_2d_back(g, a, OP_POOL_MAX, 2, 1, 2, 1, 0, 0)", g=g, a=a).ravel().tolist() == [3, 0, 0, 4]
    assert compute("out = pool_2d_back(g, a, OP_POOL_AVG, 2, 1, 2, 1, 0, 0)", g=g, a=a).ravel().tolist() == [
        1.5, 1.5, 2, 2,
    ]  # fmt: skip
    overlapping = compute("out = pool_2d_back(g, a, OP_POOL_MAX, 3, 1, 1, 1, 0, 0)", g=g, a=[[1.0, 9.0, 0.0, 2.0]])
    assert overlapping.ravel().tolist() == [0, 7, 0, 0]
    padded = compute("out = pool_2d_back(g, a, OP_POOL_AVG, 2, 1, 2, 1, 1, 0)", g=[[2.0, 4.0, 6.0]], a=a)
    assert padded.ravel().tolist() == [1, 2, 2, 3]


def test_windows_know_where_they_lie() -> None:
    at = Windows((1, 1, 5), (1, 1, 2), (1, 1, 2), (0, 0, 1), (1, 1, 2))
    x = np.arange(1.0, 6.0).reshape(1, 1, 1, 1, 5)
    assert at.counts == (1, 1, 3)
    # Padded: 0 1 2 3 4 5 0; windows 0 2, 2 4, 4 0.
    assert at.columns(x).reshape(3, 2).tolist() == [[0, 2], [2, 4], [4, 0]]
    assert [at.padded(x)[0, 0, *met].ravel().tolist() for _, met in at.taps()] == [[0, 2, 4], [2, 4, 0]]
    assert at.inside(at.padded(x)).ravel().tolist() == x.ravel().tolist()
