"""The reference's attention against its definition, made of the ops that it is put together from."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.model.errors import InvalidCase
from tests.unit.test_reference_device import compute

RANDOM = np.random.default_rng(1)


def uniform(*shape: int) -> NDArray[np.float64]:
    return RANDOM.uniform(-1, 1, shape)


def test_two_keys_by_hand() -> None:
    # Scores log(3) and 0: shares 3/4 and 1/4.
    q, k, v = [[[1.0, 0.0]]], [[[math.log(3), 5.0], [0.0, 7.0]]], [[[4.0, 8.0, 0.0], [8.0, 0.0, 4.0]]]
    out = compute("out = flash_attn_ext(q, k, v, None, 1.0, 0.0, 0.0)", q=q, k=k, v=v)
    assert np.allclose(out.ravel(), [5, 6, 1])


def test_it_is_softmax_between_two_products() -> None:
    q, k, v, m = uniform(2, 4, 3, 5), uniform(2, 4, 6, 5), uniform(2, 4, 6, 7), uniform(2, 1, 3, 6)
    m[0, 0, 1, 2:] = -np.inf
    text = "out = flash_attn_ext(q, k, v, m, 0.5, 8.0, 0.0)\nflash_attn_ext_set_prec(out, PREC_F32)"
    whole = compute(text, q=q, k=k, v=v, m=m)
    graph = "p = soft_max_ext(mul_mat(k, q), m, 0.5, 8.0)\nout = permute(mul_mat(cont(transpose(v)), p), 0, 2, 1, 3)"
    parts = compute(graph, q=q, k=k, v=v, m=m)
    assert whole.shape == (2, 3, 4, 7)
    assert np.allclose(whole, parts)


def test_heads_share_keys_one_after_the_other() -> None:
    q, k, v = uniform(1, 4, 2, 3), uniform(1, 2, 5, 3), uniform(1, 2, 5, 3)
    text = "out = flash_attn_ext(q, k, v, None, 1.0, 0.0, 0.0)"
    repeated = compute(text, q=q, k=np.repeat(k, 2, axis=1), v=np.repeat(v, 2, axis=1))
    assert np.allclose(compute(text, q=q, k=k, v=v), repeated)


def test_masks_of_heads_and_sequences_repeat() -> None:
    q, k, v, m = uniform(2, 4, 2, 3), uniform(2, 4, 5, 3), uniform(2, 4, 5, 3), uniform(1, 2, 2, 5)
    text = "out = flash_attn_ext(q, k, v, m, 1.0, 0.0, 0.0)"
    assert np.allclose(compute(text, q=q, k=k, v=v, m=m), compute(text, q=q, k=k, v=v, m=np.tile(m, (2, 2, 1, 1))))


def test_softcap_bounds_the_scores_before_the_mask() -> None:
    # A score of 100 becomes 2 tanh(50) = 2, and the mask takes it to 2 + log(2).
    text, two = "out = flash_attn_ext(q, k, v, m, 1.0, 0.0, 2.0)", [[10.0], [0.0]]
    out = compute(text, q=[[10.0]], k=two, v=[[1.0], [0.0]], m=[[math.log(2), 0]])
    assert out.item() == pytest.approx(2 * math.exp(2) / (2 * math.exp(2) + 1))


def test_sinks_take_their_share() -> None:
    text = "out = flash_attn_ext(q, k, v, None, 1.0, 0.0, 0.0)\nflash_attn_ext_add_sinks(out, s)"
    q, k, v = np.zeros((1, 2, 1, 1)), np.zeros((1, 2, 2, 1)), np.ones((1, 2, 2, 1))
    out = compute(text, q=q, k=k, v=v, s=[math.log(2), -50])
    assert np.allclose(out.ravel(), [1 / 2, 1])
    assert np.allclose(compute(text.replace("(out, s)", "(out, None)"), q=q, k=k, v=v).ravel(), [1, 1])


def test_without_keys_the_result_is_zero() -> None:
    text = "out = flash_attn_ext(q, k, v, m, 1.0, 0.0, 0.0)"
    hidden = [[-np.inf, -np.inf], [0, -np.inf]]
    out = compute(text, q=np.ones((2, 1)), k=np.ones((2, 1)), v=[[3.0], [5.0]], m=hidden)
    assert out.ravel().tolist() == [0, 3]
    # A softmax alone is 0/0 there.
    assert np.isnan(compute("out = soft_max_ext(a, m, 1.0, 0.0)", a=[[1, 1]], m=[[-np.inf, -np.inf]])).all()


@pytest.mark.parametrize(
    ("mask", "bias", "text"),
    [("None", 8.0, "a bias needs a mask"), ("q", 0.0, "masks no"), ("m", 0.0, "masks no")],
)
def test_masks_that_do_not_fit(mask: str, bias: float, text: str) -> None:
    with pytest.raises(InvalidCase, match=text):
        compute(
            f"out = flash_attn_ext(q, k, v, {mask}, 1.0, {bias}, 0.0)",
            q=uniform(1, 2, 3), k=uniform(1, 4, 3), v=uniform(1, 4, 3), m=uniform(1, 1, 4),
        )  # fmt: skip


def test_the_gradient_of_a_softmax_is_that_of_its_jacobian() -> None:
    y, g = np.array([0.5, 0.25, 0.25]), np.array([1.0, 2.0, -1.0])
    want = 0.5 * (np.diag(y) - np.outer(y, y)) @ g
    assert np.allclose(compute("out = soft_max_ext_back(g, y, 0.5, 8.0)", g=g, y=y).ravel(), want)
    assert np.allclose(compute("out = soft_max_ext_back_inplace(g, y, 0.5, 0.0)", g=g, y=y).ravel(), want)
