"""The reference's paddings, sizes, windows and positions: values that can be computed by hand."""

import numpy as np
import pytest

from gradcheck.model.errors import InvalidCase, Unsupported
from tests.unit.test_reference_device import compute


def rows(graph: str, a: object) -> list[list[float]]:
    found: list[list[float]] = np.round(compute(graph, a=np.array(a, dtype=float)), 12)[0, 0].tolist()
    return found


def test_padding() -> None:
    assert rows("out = pad(a, 1, 1, 0, 0)", [[1, 2]]) == [[1, 2, 0], [0, 0, 0]]
    assert rows("out = pad_ext(a, 2, 0, 0, 1, 0, 0, 0, 0)", [[1, 2]]) == [[0, 0, 1, 2], [0, 0, 0, 0]]
    assert compute("out = pad_ext(a, 0, 0, 0, 0, 1, 0, 0, 1)", a=[[7]]).ravel().tolist() == [0, 7, 0, 0]
    assert rows("out = pad_circular(a, 2, 0, 0, 0)", [[1, 2, 3]]) == [[1, 2, 3, 1, 2]]
    assert rows("out = pad_ext_circular(a, 1, 4, 0, 0, 0, 0, 0, 0)", [[1, 2, 3]]) == [[3, 1, 2, 3, 1, 2, 3, 1]]
    assert rows("out = pad_reflect_1d(a, 1, 2)", [[1, 2, 3, 4]]) == [[2, 1, 2, 3, 4, 3, 2]]
    with pytest.raises(InvalidCase, match="pad_reflect_1d: 4 and 0"):
        compute("out = pad_reflect_1d(a, 4, 0)", a=[[1, 2, 3, 4]])


def test_rolling() -> None:
    assert rows("out = roll(a, 1, 0, 0, 0)", [[1, 2, 3]]) == [[3, 1, 2]]
    assert rows("out = roll(a, -1, 1, 0, 0)", [[1, 2], [3, 4]]) == [[4, 3], [2, 1]]
    assert compute("out = roll(a, 0, 0, 2, -1)", a=np.arange(6).reshape(2, 3, 1, 1)).ravel().tolist() == [
        4, 5, 3, 1, 2, 0,
    ]  # fmt: skip


def test_nearest_repeats_and_drops() -> None:
    assert rows("out = upscale(a, 2, SCALE_MODE_NEAREST)", [[1, 2]]) == [[1, 1, 2, 2], [1, 1, 2, 2]]
    assert rows("out = interpolate(a, 3, 1, 1, 1, SCALE_MODE_NEAREST)", [[0, 1, 2, 3, 4]]) == [[0, 1, 3]]
    images = np.arange(6).reshape(3, 2, 1, 1)
    for mode in ("NEAREST", "BILINEAR", "BICUBIC"):
        out = compute(f"out = upscale_ext(a, 1, 1, 4, 2, SCALE_MODE_{mode})", a=images)
        assert np.allclose(out.ravel(), [0, 0, 1, 1, 2, 2, 3, 3])


def test_bilinear_between_pixels_and_between_corners() -> None:
    # Centres of 4 outputs on 2 inputs: -1/4, 1/4, 3/4, 5/4; beyond the edges the edge.
    assert rows("out = interpolate(a, 4, 1, 1, 1, SCALE_MODE_BILINEAR)", [[0, 4]]) == [[0, 1, 3, 4]]
    corners = "SCALE_MODE_BILINEAR + SCALE_FLAG_ALIGN_CORNERS"
    assert rows(f"out = interpolate(a, 5, 1, 1, 1, {corners})", [[0, 4]]) == [[0, 1, 2, 3, 4]]
    assert rows(f"out = interpolate(a, 1, 1, 1, 1, {corners})", [[7, 4]]) == [[7]]
    assert rows(f"out = interpolate(a, 3, 1, 1, 1, {corners})", [[7]]) == [[7, 7, 7]]
    assert rows("out = interpolate(a, 1, 2, 1, 1, SCALE_MODE_BILINEAR)", [[0, 1], [2, 3], [4, 5], [6, 7]]) == [
        [1.5],
        [5.5],
    ]


def test_antialias_takes_the_mean_over_what_an_output_covers() -> None:
    # 8 to 2: each output is a triangle of 4 to both sides, around 1.5 and 5.5, cut off at the edges.
    text = "out = interpolate(a, 2, 1, 1, 1, SCALE_MODE_BILINEAR + SCALE_FLAG_ANTIALIAS)"
    a = np.arange(8.0) ** 2
    weights = np.maximum(0, 1 - np.abs(np.arange(8) - 1.5) / 4)
    assert np.allclose(compute(text, a=a).ravel()[0], a @ weights / weights.sum())
    assert rows(text.replace("interpolate(a, 2", "interpolate(a, 4"), [[0, 4]]) == [[0, 1, 3, 4]]
    with pytest.raises(Unsupported, match="antialias"):
        compute(text.replace("BILINEAR", "BICUBIC"), a=a)


def test_bicubic_has_the_kernel_of_keys() -> None:
    # With -3/4 it keeps a constant, and a line at the middle of two inputs.
    assert np.allclose(compute("out = interpolate(a, 13, 5, 1, 1, SCALE_MODE_BICUBIC)", a=np.full((3, 4), 7.0)), 7)
    middle = compute("out = interpolate(a, 1, 1, 1, 1, SCALE_MODE_BICUBIC)", a=np.arange(4.0)[None])
    assert middle.item() == pytest.approx(1.5)
    # The kernel itself, at 7/4, 5/4, 3/4 and 1/4 before the spike and 1/4 and 5/4 behind it.
    spike = compute("out = interpolate(a, 16, 1, 1, 1, SCALE_MODE_BICUBIC)", a=[[0, 0, 0, 64.0, 0, 0, 0, 0]]).ravel()
    assert np.allclose(4 * spike[[3, 4, 5, 6, 7, 9]], [-9, -27, 67, 225, 225, -27])


def test_windows_of_an_image_and_back() -> None:
    a = np.arange(1, 16).reshape(1, 3, 5, 1)  # 5 wide, 3 high, one channel
    out = compute("out = win_part(a, 2)", a=a)
    assert out.shape == (6, 2, 2, 1)
    assert out[:, :, :, 0].tolist()[2] == [[5, 0], [10, 0]]
    assert out[:, :, :, 0].tolist()[3] == [[11, 12], [0, 0]]
    assert np.array_equal(compute("out = win_unpart(win_part(a, 2), 5, 3, 2)", a=a), a)


def test_relative_positions() -> None:
    out = compute("out = get_rel_pos(a, 2, 2)", a=("f16", [[10], [20], [30]]))
    assert out[0, :, :, 0].tolist() == [[20, 10], [30, 20]]  # [query, key]: row q - k + 1
    wide, high = np.reshape([1.0, 2.0], (1, 1, 1, 2)), np.reshape([10.0, 20.0], (1, 1, 1, 2))
    for name in ("add_rel_pos", "add_rel_pos_inplace"):
        added = compute(f"out = {name}(a, w, h)", a=np.zeros((1, 1, 1, 4)), w=wide, h=high)
        assert added.ravel().tolist() == [11, 12, 21, 22]  # [high, wide]


def test_counting_and_sinusoids() -> None:
    assert compute("out = arange(1.0, 2.0, 0.25)").ravel().tolist() == [1, 1.25, 1.5, 1.75]
    assert compute("out = arange(0.0, 2.5, 1.0)").ravel().tolist() == [0, 1, 2]
    out = compute("out = timestep_embedding(t, 5, 100)", t=[0.0, 2.0])
    assert np.allclose(out[0, 0], [[1, 1, 0, 0, 0], [np.cos(2), np.cos(0.2), np.sin(2), np.sin(0.2), 0]])


def test_the_largest_and_their_order() -> None:
    a = [[3.0, 9.0, 5.0, 9.0]]
    assert compute("out = top_k(a, 3)", a=a).ravel().tolist() == [1, 3, 2]
    assert compute("out = argsort_top_k(a, 2)", a=[*a, [1.0, 2.0, 3.0, 4.0]])[0, 0].tolist() == [[1, 3], [3, 2]]
    with pytest.raises(InvalidCase, match="the 5 largest"):
        compute("out = top_k(a, 5)", a=a)
