"""The exact interval of a proportion, against values from elsewhere and against its own definition."""

import math

import pytest

from gradcheck.flakiness.proportions import clopper_pearson, incomplete_beta


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k), term by term: another way than the continued fraction."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize(
    ("failed", "runs", "low", "high"),
    [
        # None failed: 1 - 0.025^(1/n) in closed form.
        (0, 200, 0.0, 0.018275),
        (0, 10, 0.0, 0.308497),
        # Quantiles of beta distributions, each checked by summing binomial terms.
        (1, 10, 0.0025286, 0.4450161),
        (5, 10, 0.1870860, 0.8129140),
        (10, 10, 0.6915029, 1.0),
        (1, 10_000, 2.5318e-6, 5.5704e-4),
        (3, 200, 0.0031041, 0.0432083),
    ],
)
def test_known_intervals(failed: int, runs: int, low: float, high: float) -> None:
    found = clopper_pearson(failed, runs)
    assert found[0] == pytest.approx(low, rel=2e-4)
    assert found[1] == pytest.approx(high, rel=2e-4)


@pytest.mark.parametrize("runs", [1, 2, 7, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_each_end_is_where_what_was_seen_has_half_of_the_rest(runs: int, confidence: float) -> None:
    tail = (1 - confidence) / 2
    for failed in range(runs + 1):
        low, high = clopper_pearson(failed, runs, confidence)
        assert low <= failed / runs <= high
        if failed:
            assert 1 - binomial_cdf(failed - 1, runs, low) == pytest.approx(tail, rel=1e-9)
        if failed < runs:
            assert binomial_cdf(failed, runs, high) == pytest.approx(tail, rel=1e-9)


def test_many_runs_are_no_matter() -> None:
    low, high = clopper_pearson(0, 1_000_000)
    assert low == 0
    assert high == pytest.approx(-math.expm1(math.log(0.025) / 1_000_000))
    low, high = clopper_pearson(500_000, 1_000_000)
    assert low == pytest.approx(0.5 - 1.96 * 0.0005, abs=2e-6)
    assert high == pytest.approx(0.5 + 1.96 * 0.0005, abs=2e-6)


def test_without_runs_nothing_is_known() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 of 2 runs"):
        clopper_pearson(3, 2)


@pytest.mark.parametrize(("a", "b", "x"), [(1, 1, 0.3), (2, 5, 0.01), (2, 5, 0.9), (30, 4, 0.8), (0.5, 0.5, 0.25)])
def test_incomplete_beta_is_symmetric_and_what_it_is_called(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(1 - incomplete_beta(b, a, 1 - x), rel=1e-12)
    if isinstance(a, int) and isinstance(b, int):
        # DLMF 8.17.5: for whole numbers a binomial sum.
        n = a + b - 1
        assert incomplete_beta(a, b, x) == pytest.approx(1 - binomial_cdf(a - 1, n, x), rel=1e-9)
    else:
        assert incomplete_beta(a, b, x) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)))
