"""Outputs of indices are judged by what they pick."""

import numpy as np
import pytest

from gradcheck.numerics.picks import picked

SOURCE = np.array([[3.0, 1.0, 3.0, 2.0], [0.0, 0.0, 5.0, 4.0]])


def indices(*rows: tuple[float, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(rows, dtype=np.float64)


def test_equal_elements_stand_for_one_another() -> None:
    one, faults = picked(indices((1, 3, 0, 2), (0, 1, 3, 2)), SOURCE, ordered=True)
    other, _ = picked(indices((1, 3, 2, 0), (1, 0, 3, 2)), SOURCE, ordered=True)
    assert not faults
    assert one.tolist() == other.tolist() == [[1.0, 2.0, 3.0, 3.0], [0.0, 0.0, 4.0, 5.0]]


def test_a_free_order_is_no_difference_and_a_fixed_one_is() -> None:
    up, down = indices((1, 3), (2, 3)), indices((3, 1), (3, 2))
    assert np.array_equal(picked(up, SOURCE, ordered=False)[0], picked(down, SOURCE, ordered=False)[0])
    assert not np.array_equal(picked(up, SOURCE, ordered=True)[0], picked(down, SOURCE, ordered=True)[0])


@pytest.mark.parametrize("wrong", [-1.0, 4.0, 0.5, float("nan")])
def test_an_index_that_picks_nothing(wrong: float) -> None:
    values, faults = picked(indices((wrong, 1), (0, 1)), SOURCE, ordered=True)
    assert faults == ["1 indices are no columns of the 4 that there are"]
    assert np.isnan(values[0, 0])


def test_an_index_that_stands_twice_in_its_row() -> None:
    _, faults = picked(indices((1, 2, 1), (0, 1, 2)), SOURCE, ordered=False)
    assert faults == ["1 indices stand in their row before"]
