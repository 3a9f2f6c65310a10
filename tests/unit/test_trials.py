"""Many seeds become one outcome."""

import math

import pytest

from gradcheck.model import codec
from gradcheck.model.result import Evidence, Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.model.trial import Trial, Trials, of_limit
from gradcheck.modes.trials import Tally, over_seeds


def measured(maa: float, status: Status = Status.PASS, reason: str = "", element: float = 0.0) -> Outcome:
    return Outcome(
        status,
        reason,
        metrics=(Metric("maa", maa, 1e-3), Metric("element", element, 5e-3), Metric("cosine", 1.0)),
        evidence=(Evidence("a", (0, 0, 0, 0), maa, 0.0, maa, 0.0),),
        counts=(("judged", 12),),
    )


def merged(*outcomes: Outcome, first: int = 5) -> Outcome:
    return over_seeds(lambda seed: outcomes[seed - first], range(first, first + len(outcomes)))


def seeds_tried(*outcomes: Outcome) -> list[int]:
    tried: list[int] = []

    def attempt(seed: int) -> Outcome:
        tried.append(seed)
        return outcomes[seed]

    over_seeds(attempt, range(len(outcomes)))
    return tried


def test_a_case_is_as_bad_as_its_worst_seed_and_shows_that_one() -> None:
    outcome = merged(measured(1e-5), measured(0.5, Status.FAIL, "maa 0.5 > 0.001"), measured(2e-5))
    assert outcome.status is Status.FAIL
    assert outcome.reason == "1 of 3 seeds failed, the worst is 6: maa 0.5 > 0.001"
    assert outcome.metrics[0].value == 0.5
    assert outcome.evidence[0].got == 0.5
    assert outcome.counts == (("seeds", 3), ("failed", 1), ("judged", 12))
    assert outcome.trials == Trials(
        worst=6,
        measures=(("maa", 1e-3), ("element", 5e-3), ("cosine", None)),
        runs=(
            Trial(5, Status.PASS, (1e-5, 0.0, 1.0)),
            Trial(6, Status.FAIL, (0.5, 0.0, 1.0), "maa 0.5 > 0.001"),
            Trial(7, Status.PASS, (2e-5, 0.0, 1.0)),
        ),
    )


def worst_seed(*outcomes: Outcome) -> int:
    trials = merged(*outcomes, first=0).trials
    assert trials is not None
    return trials.worst


def test_of_good_seeds_the_one_nearest_to_a_limit_is_shown() -> None:
    assert worst_seed(measured(4e-4), measured(1e-5, element=4.9e-3), measured(9e-4)) == 1
    assert worst_seed(measured(1e-5), measured(1e-5)) == 0


@pytest.mark.parametrize("status", [Status.CRASH, Status.ERROR, Status.FAIL, Status.VACUOUS])
def test_the_order_of_endings_is_fixed(status: Status) -> None:
    order = (Status.CRASH, Status.ERROR, Status.FAIL, Status.VACUOUS, Status.PASS)
    for better in order[order.index(status) + 1 :]:
        # A good value does not make an ending better, nor a bad value one worse.
        assert merged(measured(0.9, better), measured(1e-9, status)).status is status
        assert merged(measured(0.9, better, "why"), Outcome(status, "so")).reason.endswith("the worst is 6: so")


def test_a_failure_that_cannot_be_measured_is_worse_than_one_that_can() -> None:
    assert worst_seed(measured(0.5, Status.FAIL), measured(math.nan, Status.FAIL)) == 1
    # Of a case whose gradients are all zero the MAA is NaN, and it passes.
    assert worst_seed(measured(math.nan, element=1e-3), measured(math.nan, element=2e-3)) == 1


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.SKIP])
def test_a_case_that_is_not_run_ends_at_the_first_seed(status: Status) -> None:
    refused = Outcome(status, "no rule")
    assert seeds_tried(refused, measured(1e-5)) == [0]
    assert merged(refused, measured(1e-5)) is refused
    late = merged(measured(1e-5), refused, measured(1e-5))
    assert late.status is Status.PASS
    assert late.notes == (f"ended at seed 6: {status} no rule",)
    assert dict(late.counts)["seeds"] == 1


def test_a_case_at_fault_ends_at_the_first_seed() -> None:
    wrong = Outcome(Status.ERROR, "no function silo", invalid_case=True)
    assert seeds_tried(wrong, wrong) == [0]


def test_a_crash_ends_the_case_and_a_failure_does_not() -> None:
    assert seeds_tried(measured(1e-5), Outcome(Status.CRASH), measured(1e-5)) == [0, 1]
    assert seeds_tried(measured(1e-5), measured(1, Status.FAIL), Outcome(Status.ERROR), measured(1)) == [0, 1, 2, 3]


def test_values_have_their_place_whatever_a_seed_measured() -> None:
    short = Outcome(Status.FAIL, "something wrote behind the end of out")
    partial = Outcome(Status.FAIL, metrics=(Metric("element", 0.1, 5e-3),))
    trials = merged(short, measured(1e-5), partial).trials
    assert trials is not None
    assert trials.measures[0] == ("maa", 1e-3)
    assert [trial.values[:2] for trial in trials.runs[:2]] == [(), (1e-5, 0.0)]
    assert math.isnan(trials.runs[2].values[0])
    assert trials.runs[2].values[1] == 0.1


def test_each_seed_is_announced_with_what_went_before() -> None:
    told: list[tuple[int, int]] = []

    def tell(seed: int, tally: Tally) -> None:
        told.append((seed, len(tally.runs)))

    over_seeds(lambda _: measured(1e-5), range(3, 6), tell)
    assert told == [(3, 0), (4, 1), (5, 2)]


def test_without_a_seed_there_is_nothing_to_merge() -> None:
    with pytest.raises(ValueError, match="one seed at least"):
        over_seeds(lambda _: measured(1), ())


def test_trials_cross_the_pipe() -> None:
    outcome = merged(measured(1e-5), measured(math.inf, Status.FAIL, "why"))
    assert codec.decode(Outcome, codec.encode(outcome)) == outcome


@pytest.mark.parametrize(("value", "limit", "share"), [(1, 2, 0.5), (0, 0, 0), (1e-9, 0, math.inf), (3, 2, 1.5)])
def test_shares_of_a_limit(value: float, limit: float, share: float) -> None:
    assert of_limit(value, limit) == share
