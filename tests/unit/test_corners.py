"""Values that variants put into params: what they are, and the range that they stay in."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.model.case import Init, Input
from gradcheck.numerics.sampling import DRAWN_ELEMENTS, generator, sample

INITS = {
    "uniform": Init(),
    "gap": Init("uniform", (("low", -1.0), ("high", 1.0), ("grid", None), ("gap", 0.1))),
    "skewed": Init("uniform", (("low", -8.0), ("high", 4.0), ("grid", None), ("gap", None))),
    "below": Init("uniform", (("low", -8.0), ("high", -4.0), ("grid", None), ("gap", None))),
    "grid": Init("uniform", (("low", -4.0), ("high", 4.0), ("grid", 0.25), ("gap", None))),
    "normal": Init("normal", (("mean", 0.0), ("std", 1.0))),
    "positive": Init("positive", (("low", 0.5), ("high", 1.5))),
    "distinct": Init("distinct", (("low", -1.0), ("high", 1.0))),
}
DATA = ("special", "negative", "spike", "constant", "sorted")
BOUNDED = ("skewed", "below", "grid", "positive")


def drawn(init: str, data: str, ne: tuple[int, int, int, int] = (33, 5, 4, 1)) -> NDArray[Any]:
    kind = INITS[init]
    return sample(Input("a", "f32", ne, Init(kind.kind, kind.args, data)), generator(0, "a"))


@pytest.mark.parametrize(
    ("init", "data"),
    # The domain of `positive` has neither zero nor negative numbers.
    [(init, data) for init in INITS for data in DATA if init != "positive" or data not in ("special", "negative")],
)
def test_values_have_the_shape_and_the_range_of_their_init(init: str, data: str) -> None:
    values = drawn(init, data)
    assert values.shape == (1, 4, 5, 33)
    assert np.isfinite(values).all()
    if init in BOUNDED and data != "special":
        bounds = dict(INITS[init].args)
        assert bounds["low"] <= values.min() <= values.max() <= bounds["high"]
    if init == "grid":
        assert np.array_equal(values, np.round(values * 4) / 4)


@pytest.mark.parametrize("init", ["uniform", "gap", "skewed", "below", "normal", "distinct"])
def test_negative(init: str) -> None:
    values = drawn(init, "negative")
    assert (values < 0).all()
    if init == "gap":
        assert (values <= -0.1).all()
    if init == "distinct":
        assert np.unique(values).size == values.size


@pytest.mark.parametrize("init", INITS)
def test_one_spike(init: str) -> None:
    values = np.sort(drawn(init, "spike").ravel())
    gap = values[-1] - values[-2]
    assert gap > 0.7 * (values[-2] - values[0])


@pytest.mark.parametrize("init", INITS)
def test_sorted_and_constant(init: str) -> None:
    values = drawn(init, "sorted").ravel()
    assert (np.diff(values) >= 0).all()
    assert np.array_equal(values, np.sort(drawn(init, "").ravel()))
    assert np.unique(drawn(init, "constant")).size == 1
    assert drawn(init, "constant").flat[0] != 0


def test_special_values_are_zeros_and_denormal_numbers_and_few() -> None:
    plain, values = drawn("uniform", ""), drawn("uniform", "special")
    changed = values != plain
    assert 0 < changed.sum() <= values.size / 32
    stored = values[changed].astype(np.float32)
    tiny = np.finfo(np.float32).tiny
    assert (np.abs(stored) <= tiny).all()
    assert {(0.0, False), (0.0, True)} <= {(abs(float(x)), bool(np.signbit(x))) for x in stored}
    assert ((stored != 0) & (np.abs(stored) < tiny)).any()


@pytest.mark.parametrize(("data", "expected"), [("infinite", [-np.inf, np.inf]), ("negative_infinite", [-np.inf])])
def test_infinities_are_one_of_each_sign(data: str, expected: list[float]) -> None:
    values = drawn("uniform", data)
    assert sorted(values[~np.isfinite(values)]) == expected


def test_a_tensor_whose_values_are_repeated_has_them_too() -> None:
    values = drawn("uniform", "negative", (1024, 1024, 1, 1))
    assert values.shape == (DRAWN_ELEMENTS,)
    assert (values < 0).all()
