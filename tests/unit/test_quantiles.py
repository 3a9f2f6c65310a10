"""Quantiles are NumPy's."""

import numpy as np
import pytest

from gradcheck.numerics.quantiles import quantile


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 10, 1001])
def test_they_are_numpys_to_the_bit(share: float, size: int) -> None:
    values = np.random.default_rng(size).normal(size=(3, size))
    np.testing.assert_array_equal(quantile(values, share), np.quantile(values, share, axis=1, keepdims=True))


def test_nan_stays_in_its_row() -> None:
    values = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(quantile(values, 0.5), [[np.nan], [2.0]])


def test_infinities_are_values() -> None:
    values = np.array([[1.0, np.inf, np.inf, np.inf], [-np.inf, -np.inf, -np.inf, 1.0]])
    np.testing.assert_array_equal(quantile(values, 0.5), [[np.inf], [-np.inf]])
