"""Tails of known distributions, and the limits that follow from trials."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gradcheck.flakiness import assess
from gradcheck.flakiness.limits import FLOORS, round_up
from gradcheck.flakiness.tails import BEYOND_LARGEST, FEWEST, fit_tail, upper_quantile
from gradcheck.model.flakiness import Basis, Suggestion
from gradcheck.model.result import Result
from gradcheck.model.status import Status
from gradcheck.model.trial import Trial, Trials
from tests.unit.test_reports import result

RATE = 1e-4


def pareto(index: float, count: int, seed: int = 0) -> list[float]:
    """Values with the share x^(-1 / index) above x: the quantile of a rate is rate^(-index)."""
    uniform = np.random.default_rng(seed).uniform(size=count)
    return [float(value) for value in uniform**-index]


@pytest.mark.parametrize("index", [0.2, 0.5, 1.0])
def test_the_index_of_a_pareto_tail_is_found(index: float) -> None:
    found = [fit_tail(pareto(index, 40_000, seed)) for seed in range(20)]
    indices = [tail.index for tail in found if tail]
    assert len(indices) == 20
    assert np.mean(indices) == pytest.approx(index, rel=0.05)
    # Asymptotically normal with index / sqrt(k), k = 200.
    assert np.std(indices) == pytest.approx(index / math.sqrt(200), rel=0.5)


@pytest.mark.parametrize("index", [0.2, 1.0])
def test_a_quantile_beyond_the_sample_is_bounded_as_often_as_it_says(index: float) -> None:
    want = RATE**-index
    found = [upper_quantile(pareto(index, 1000, seed), RATE) for seed in range(200)]
    assert {quantile.basis for quantile in found} == {Basis.TAIL}
    assert np.mean([quantile.most >= want for quantile in found]) > 0.9
    assert np.median([quantile.likely for quantile in found]) == pytest.approx(want, rel=0.25)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.lognormal(-12, 0.3, 1000),
        lambda rng: np.abs(rng.normal(0, 1e-6, 1000)),
        lambda rng: rng.exponential(1e-6, 1000),
        lambda rng: rng.uniform(0, 1e-6, 1000),
    ],
)
def test_a_lighter_tail_is_bounded_too_and_not_absurdly(draw: object) -> None:
    assert callable(draw)
    want = float(np.quantile(np.concatenate([draw(np.random.default_rng(s)) for s in range(100, 300)]), 1 - RATE))
    most = [upper_quantile(list(map(float, draw(np.random.default_rng(seed)))), RATE).most for seed in range(50)]
    assert np.mean(np.array(most) >= want) > 0.95
    assert np.median(most) < 10 * want


def test_the_rate_at_a_value_is_the_inverse_of_the_value_at_a_rate() -> None:
    tail = fit_tail(pareto(0.5, 2000))
    assert tail is not None
    assert tail.exceedance(tail.quantile(RATE, tail.upper_index)) == pytest.approx(RATE)


def test_a_quantile_within_the_sample_is_read_off() -> None:
    quantile = upper_quantile([float(value) for value in range(10_000)], 0.01)
    assert quantile.basis is Basis.SAMPLE
    assert quantile.most == 9899  # a hundred values of ten thousand lie above


@pytest.mark.parametrize(
    "values",
    [
        [1e-6] * 30 + [3e-6],
        pareto(0.5, FEWEST - 1),
        [0.0] * 1000,
        [0.0] * 995 + [1e-5] * 5,
        [2e-6] * 1000,
    ],
    ids=["few", "one too few", "zeros", "few that are not zero", "all alike"],
)
def test_where_no_tail_can_be_fitted_the_largest_value_is_all(values: list[float]) -> None:
    assert fit_tail(values) is None
    quantile = upper_quantile(values, RATE)
    assert quantile.basis is Basis.MAXIMUM
    assert (quantile.likely, quantile.most) == (max(values), BEYOND_LARGEST * max(values))


def test_no_limit_is_proposed_below_what_was_seen() -> None:
    values = [1 + 1e-3 * step for step in range(1000)] + [50.0]
    assert upper_quantile(values, RATE).likely >= 50


@pytest.mark.parametrize(
    ("value", "rounded"), [(1e-3, 1e-3), (1.01e-3, 2e-3), (2.1e-7, 5e-7), (6, 10), (0.0, 0.0), (math.inf, math.inf)]
)
def test_limits_are_rounded_up(value: float, rounded: float) -> None:
    assert round_up(value) == rounded


def tried(values: list[float], case: str = "v=0", op: str = "SILU", limit: float = 1e-3, metric: str = "maa") -> Result:
    statuses = [Status.PASS if value <= limit else Status.FAIL for value in values]
    runs = tuple(Trial(seed, s, (value,)) for seed, (s, value) in enumerate(zip(statuses, values, strict=True)))
    status = Status.FAIL if Status.FAIL in statuses else Status.PASS
    made = result(status, op=op, trials=Trials(0, ((metric, limit),), runs))
    return replace(made, case_id=f"{op}({case})")


def proposed(*results: Result, rate: float = RATE) -> tuple[Suggestion, ...]:
    return assess(results, rate).suggestions


def scaled(factor: float, seed: int, count: int = 200) -> list[float]:
    return [factor * value for value in pareto(0.2, count, seed)]


def test_an_op_gets_one_limit_from_all_its_cases() -> None:
    cases = [tried(scaled(1e-6, seed), f"v={seed}") for seed in range(5)]
    (only,) = proposed(*cases)
    assert (only.op, only.case_id, only.metric, only.limit) == ("SILU", "", "maa", 1e-3)
    assert (only.samples, only.failed, only.basis) == (1000, 0, Basis.TAIL)
    assert only.proposed is not None
    assert 1e-6 * RATE**-0.2 < only.proposed < 1e-4
    assert only.holds
    assert not only.too_tight
    assert only.exceedance is not None
    assert only.exceedance < RATE


def test_a_case_that_stands_out_gets_one_of_its_own() -> None:
    cases = [tried(scaled(1e-6, seed), f"v={seed}") for seed in range(5)]
    usual, special = proposed(*cases, tried(scaled(1e-4, 9), "v=large"))
    assert (usual.case_id, special.case_id) == ("", "SILU(v=large)")
    assert usual.proposed == proposed(*cases)[0].proposed
    assert usual.proposed
    assert special.proposed
    assert special.proposed > 10 * usual.proposed
    assert special.samples == 200


def test_where_many_stand_out_none_does() -> None:
    cases = [tried(scaled(10.0 ** (-9 + 2 * seed), seed), f"v={seed}", limit=1e9) for seed in range(4)]
    assert [one.case_id for one in proposed(*cases)] == [""]


def test_cases_with_limits_of_their_own_are_not_mixed() -> None:
    found = proposed(tried(scaled(1e-6, 0), "v=0"), tried(scaled(1e-5, 1), "v=1", limit=1e-2))
    assert {(one.limit, one.samples) for one in found} == {(1e-3, 200), (1e-2, 200)}


def test_nothing_is_proposed_below_rounding() -> None:
    (fitted,) = proposed(tried(scaled(1e-12, 0)))
    assert fitted.basis is Basis.ROUNDING
    assert fitted.proposed == round_up(FLOORS["grad"]["maa"])
    (few,) = proposed(tried([1e-12] * 30))
    assert few.basis is Basis.MAXIMUM
    assert few.proposed == fitted.proposed


def test_no_value_above_zero_tells_nothing_of_those_that_will_be() -> None:
    (zeros,) = proposed(tried([0.0] * 200))
    assert zeros.basis is Basis.MAXIMUM
    assert zeros.proposed is None
    assert not zeros.holds
    assert not zeros.too_tight


def test_a_limit_that_is_too_tight_is_told_from_one_that_takes_more_seeds() -> None:
    (tight,) = proposed(tried(scaled(1e-6, 0), limit=1.5e-6))
    assert tight.too_tight
    assert not tight.holds
    assert tight.failed > 0
    assert tight.proposed is not None
    (unknown,) = proposed(tried(scaled(1e-6, 0), limit=(tight.likely + tight.proposed) / 2))
    assert not unknown.too_tight
    assert not unknown.holds


def test_what_is_no_number_is_left_out() -> None:
    values = [*scaled(1e-6, 0), math.nan, math.inf]
    assert proposed(tried(values))[0].samples == 200
    assert proposed(tried([math.nan] * 30)) == ()
