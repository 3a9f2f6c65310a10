"""The delicate ops of the NumPy reference, against numbers worked out by hand."""

import math
from collections.abc import Iterable

import numpy as np
import pytest

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.softmax import slopes
from tests.unit.test_reference_device import compute

TURN = "512, 10000.0, 1.0, 0.0, 1.0, 32.0, 1.0"


def turned(pairs: Iterable[tuple[float, float]], angles: Iterable[float]) -> list[complex]:
    """Each pair as a complex number, turned by its angle."""
    return [complex(*pair) * np.exp(1j * angle) for pair, angle in zip(pairs, angles, strict=True)]


def test_rope_turns_neighbours_and_copies_the_rest() -> None:
    a = [[[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 4, 5, 6]]]  # two tokens
    out = compute(f"out = rope_ext(a, p, None, 4, 0, {TURN})", a=a, p=("i32", [0, 3]))
    assert np.array_equal(out[0, 0, 0], a[0][0])
    want = turned([(1, 2), (3, 4)], [3, 3 / 100])
    assert np.allclose(out[0, 1, 0], [want[0].real, want[0].imag, want[1].real, want[1].imag, 5, 6])
    back = compute(f"out = rope_ext_back(a, p, None, 4, 0, {TURN})", a=out[0], p=("i32", [0, 3]))
    assert np.allclose(back[0], a)


def test_rope_neox_turns_elements_half_of_the_turned_part_apart() -> None:
    text = f"out = rope_ext(a, p, f, 4, ROPE_TYPE_NEOX, {TURN})"
    out = compute(text, a=[[[1, 2, 3, 4, 5, 6]]], p=("i32", [3]), f=[1, 0.5])
    want = turned([(1, 3), (2, 4)], [3, 2 * 3 / 100])
    assert np.allclose(out.ravel(), [want[0].real, want[1].real, want[0].imag, want[1].imag, 5, 6])


@pytest.mark.parametrize(
    ("mode", "sections", "taken", "exponents"),
    [
        ("MROPE", "[2, 1, 1, 2]", [0, 0, 1, 2, 3, 3], [0, 1, 2, 3, 4, 5]),
        ("MROPE", "[1, 1, 1, 0]", [0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]),
        ("IMROPE", "[2, 2, 2, 0]", [0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]),
        ("IMROPE", "[2, 2, 1, 1]", [0, 1, 2, 0, 1, 3], [0, 1, 2, 3, 4, 5]),
        ("VISION", "[3, 3, 0, 0]", [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]),
    ],
)
def test_rope_takes_a_position_for_each_section(
    mode: str, sections: str, taken: list[int], exponents: list[int]
) -> None:
    x = np.arange(1, 13)
    dims = 6 if mode == "VISION" else 12
    text = f"out = rope_multi(a, p, None, {dims}, {sections}, ROPE_TYPE_{mode}, 512, 10.0, 1.0, 0.0, 0.5, 32.0, 1.0)"
    out = compute(text, a=[[x]], p=("i32", [2, 3, 5, 7]))
    angles = [(2, 3, 5, 7)[c] * 10 ** (-2 * e / dims) for c, e in zip(taken, exponents, strict=True)]
    want = turned(zip(x[:6], x[6:], strict=True), angles)
    assert np.allclose(out.ravel(), 0.5 * np.array([w.real for w in want] + [w.imag for w in want]))


def test_rope_yarn_mixes_scaled_and_plain_angles() -> None:
    # 8 dimensions, base 10, 64 positions: pair 8 log(64 / (2 pi n)) / (2 log 10) turns n times over them:
    # low = floor(1.62) for n = 4, high = ceil(4.03) = 5 for n = 1
    out = compute(
        "out = rope_ext(a, p, None, 8, 0, 64, 10.0, 0.5, 0.8, 1.0, 4.0, 1.0)", a=[[[1, 0] * 4]], p=("i32", [1])
    )
    mix = [0.8 * (1 - max(0, (pair - 1) / 4)) for pair in range(4)]
    angles = [10 ** (-pair / 4) * (0.5 * (1 - m) + m) for pair, m in enumerate(mix)]
    size = 1 + 0.1 * math.log(2)
    assert np.allclose(out.reshape(4, 2)[:, 0], [size * math.cos(angle) for angle in angles])
    assert np.allclose(out.reshape(4, 2)[:, 1], [size * math.sin(angle) for angle in angles])


def test_slopes_of_alibi() -> None:
    assert slopes(4, 8.0).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    # 2 is the largest power of two in 3 heads; the third head takes an odd step of the finer ladder.
    assert slopes(3, 8.0).tolist() == [2.0**-4, 2.0**-8, 2.0**-2]
    assert slopes(3, 0.0).tolist() == [1, 1, 1]


def test_soft_max_with_bias_mask_and_sinks() -> None:
    a = np.zeros((2, 1, 2))  # two heads
    mask = [[0, math.log(2) * 16]]
    out = compute("out = soft_max_ext(a, m, 1.0, 8.0)", a=a, m=mask)
    # slopes 1/16 and 1/256: powers 1 and 2, 1 and 2^(1/16)
    assert np.allclose(out[0, :, 0], [[1 / 3, 2 / 3], [1 / (1 + 2 ** (1 / 16)), 1 - 1 / (1 + 2 ** (1 / 16))]])
    text = "out = soft_max_ext(a, None, 1.0, 0.0)\nsoft_max_add_sinks(out, s)"
    assert np.allclose(compute(text, a=a, s=[0, math.log(2)])[0, :, 0], [[1 / 3] * 2, [1 / 4] * 2])
    assert np.allclose(compute("out = soft_max_ext(a, m, 1.0, 0.0)", a=[[5, 3]], m=[[-np.inf, 0]]), [[0, 1]])
    with pytest.raises(InvalidCase, match="a bias needs a mask"):
        compute("out = soft_max_ext(a, None, 1.0, 8.0)", a=a)


def test_masks_of_heads_repeat() -> None:
    a, mask = np.zeros((4, 1, 2)), np.log([[[1, 1]], [[1, 3]]])
    out = compute("out = soft_max_ext(a, m, 1.0, 0.0)", a=a, m=mask)
    assert np.allclose(out[0, :, 0, 1], [1 / 2, 3 / 4, 1 / 2, 3 / 4])


def test_diagonal_masks() -> None:
    out = compute("out = diag_mask_zero(a, 1)", a=np.ones((2, 4)))
    assert out[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]
    assert np.isneginf(compute("out = diag_mask_inf(a, 0)", a=np.ones((2, 2)))[0, 0, 0, 1])


def test_im2col_writes_channel_by_channel() -> None:
    image = np.arange(18).reshape(1, 2, 3, 3)
    out = compute('out = im2col(k, a, 1, 1, 0, 0, 1, 1, 1, "f32")', k=np.zeros((2, 2, 2)), a=image)
    assert out.shape == (1, 2, 2, 8)
    assert out[0, 0, 1].tolist() == [1, 2, 4, 5, 10, 11, 13, 14]
    padded = compute('out = im2col(k, a, 2, 1, 1, 1, 2, 1, 1, "f32")', k=np.zeros((2, 2, 2)), a=image)
    assert padded.shape == (1, 4, 2, 8)
    # row of windows 0 is at height -1; window 0 has the columns -1 and 1, window 1 the columns 1 and 3
    assert padded[0, 0].tolist() == [[0, 0, 0, 1, 0, 0, 0, 10], [0, 0, 1, 0, 0, 0, 10, 0]]


def test_im2col_of_signals() -> None:
    out = compute('out = im2col(k, a, 2, 0, 1, 0, 1, 0, 0, "f32")', k=np.zeros((2, 2)), a=[[1, 2, 3], [4, 5, 6]])
    assert out[0, 0].tolist() == [[0, 1, 0, 4], [2, 3, 5, 6]]


def test_im2col_in_three_dimensions() -> None:
    image = np.arange(16).reshape(2, 2, 2, 2)  # two channels, one volume
    text = 'out = im2col_3d(k, a, 2, 1, 1, 1, 0, 0, 0, 1, 1, 1, "f32")'
    assert compute(text, k=np.zeros((2, 2, 2, 2)), a=image).ravel().tolist() == list(range(16))


def test_pooling_counts_the_padding_in_two_dimensions_alone() -> None:
    signal = [1.0, 5.0, 3.0]
    assert compute("out = pool_1d(a, OP_POOL_AVG, 2, 2, 1)", a=signal).ravel().tolist() == [1, 4]
    assert compute("out = pool_1d(a, OP_POOL_MAX, 2, 1, 0)", a=signal).ravel().tolist() == [5, 5]
    image = [[4.0, 8.0], [12.0, 16.0]]
    assert compute("out = pool_2d(a, OP_POOL_AVG, 2, 2, 2, 2, 1, 1)", a=image)[0, 0].tolist() == [[1, 2], [3, 4]]
    assert compute("out = pool_2d(a, OP_POOL_MAX, 2, 1, 1, 1, 0, 0)", a=image)[0, 0].tolist() == [[8], [16]]


def test_products_spread_their_batches_one_after_the_other() -> None:
    a = np.arange(1, 5).reshape(2, 1, 2)  # two matrices of one row
    b = np.ones((4, 1, 2))
    assert compute("out = mul_mat(a, b)", a=a, b=b).ravel().tolist() == [3, 3, 7, 7]
    out = compute("out = out_prod(a, b)", a=[[1, 2]], b=[[3, 4, 5]])
    assert out[0, 0].tolist() == [[3, 6], [4, 8], [5, 10]]


def test_experts() -> None:
    experts = np.array([[[1, 0]], [[0, 1]]])
    out = compute("out = mul_mat_id(x, b, i)", x=experts, b=[[[3, 4]], [[5, 6]]], i=("i32", [[0, 1], [1, 1]]))
    assert out[0].tolist() == [[[3], [4]], [[6], [6]]]


def test_gates_and_their_order() -> None:
    a = [2.0, -1.0, 10.0, 20.0]
    assert compute("out = reglu(a)", a=a).ravel().tolist() == [20, 0]
    assert compute("out = reglu_swapped(a)", a=a).ravel().tolist() == [20, -20]
    assert compute("out = reglu_split(a, b)", a=[2, -1], b=[3, 3]).ravel().tolist() == [6, 0]
    x = 7 / (1 + math.exp(-7 * 0.5))
    assert np.allclose(
        compute("out = swiglu_oai(a, b, 0.5, 7.0)", a=[9.0, 9.0], b=[2.0, -9.0]).ravel(), [3 * x, -6 * x]
    )


def test_rounding_goes_away_from_zero() -> None:
    assert compute("out = round(a)", a=[0.5, -0.5, 2.5, -1.4]).ravel().tolist() == [1, -1, 3, -1]


def test_losses_and_optimizers() -> None:
    loss = compute("out = cross_entropy_loss(a, b)", a=np.log([[1, 3], [1, 1]]), b=[[0.0, 1.0], [0.5, 0.5]])
    assert np.allclose(loss, (math.log(4 / 3) + math.log(2)) / 2)
    assert np.allclose(compute("out = opt_step_sgd(a, g, s)", a=[1], g=[2], s=[0.5, 0.25]), 1 * (1 - 0.125) - 1)
    settings = [0.5, 0.5, 0.75, 0.0, 0.25, 2.0, 4.0]
    out = compute(
        "x = opt_step_adamw(a, g, m, v, s)\nout = add(scale(x, 1.0), m)", a=[1], g=[2], m=[0], v=[0], s=settings
    )
    # m = 1, v = 1; the weight is 0.875 - 0.5 * 2 / 2
    assert np.allclose(out, 0.875 - 0.5 + 1)


def test_triangles_and_systems() -> None:
    ones = np.ones((2, 2))
    wants = {0: [[1, 1], [0, 1]], 1: [[0, 1], [0, 0]], 2: [[1, 0], [1, 1]], 3: [[0, 0], [1, 0]]}
    for kind, want in wants.items():
        assert compute(f"out = tri(a, {kind})", a=ones)[0, 0].tolist() == want
    assert compute("out = diag(a)", a=[1, 2])[0, 0].tolist() == [[1, 0], [0, 2]]
    out = compute("out = solve_tri(a, b, 1, 1, 0)", a=[[2, 9], [1, 4]], b=[[2], [9]])
    assert np.allclose(out.ravel(), [1, 2])
