"""Jobs with many seeds in real processes: every ending has a seed, and the limit of time is for each."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradcheck.model.case import KnownFailure
from gradcheck.model.job import Job
from gradcheck.model.result import Outcome, Result
from gradcheck.model.status import Status
from gradcheck.runner import Pool
from gradcheck.runner.progress import Progress
from tests.unit.test_runner_pool import FAULTS, job, options

FIRST, SEEDS = 5, 6


@pytest.fixture(scope="module", autouse=True)
def planted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FAULTS))
        yield


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Pool]:
    with Pool(options()) as pool:
        yield pool


def many(then: str, at: int = 8, **more: object) -> Job:
    """A job with the seeds 5 to 10, of which one ends as another mode does."""
    made = job("at_seed", at=at, then=then, **more)  # type: ignore[arg-type]
    return replace(made, settings=replace(made.settings, seed=FIRST, seeds=SEEDS))


def ran(result: Result) -> list[tuple[int, Status]]:
    assert result.outcome.trials is not None
    return [(trial.seed, trial.status) for trial in result.outcome.trials.runs]


def passed(*seeds: int) -> list[tuple[int, Status]]:
    return [(seed, Status.PASS) for seed in seeds]


def test_every_seed_is_run_in_order(shared_pool: Pool) -> None:
    result = shared_pool.call(many("ok", at=99))
    assert result.status is Status.PASS
    assert ran(result) == passed(5, 6, 7, 8, 9, 10)
    assert result.outcome.counts == (("seeds", 6), ("failed", 0))
    assert result.outcome.trials is not None
    assert result.outcome.trials.worst == 10  # the largest value
    assert result.outcome.trials.runs[1].values == (6e-6,)


def test_one_failing_seed_fails_the_case_and_is_named(shared_pool: Pool) -> None:
    result = shared_pool.call(many("fails"))
    assert result.status is Status.FAIL
    assert result.outcome.reason == "1 of 6 seeds failed, the worst is 8: off by 2"
    assert ran(result) == [*passed(5, 6, 7), (8, Status.FAIL), *passed(9, 10)]


def test_one_seed_is_no_trial(shared_pool: Pool) -> None:
    made = many("fails")
    result = shared_pool.call(replace(made, settings=replace(made.settings, seed=8, seeds=1)))
    assert result.outcome == Outcome(Status.FAIL, "off by 2")


@pytest.mark.parametrize(
    ("then", "status", "reason"),
    [
        ("abort", Status.CRASH, "aborted: GGML_ASSERT(a->ne[0] == 3) failed at ggml.c:12"),
        ("segfault", Status.CRASH, "killed by SIGSEGV"),
        ("out_of_memory", Status.CRASH, "out of memory: 8 GB on CUDA0"),
        ("loop", Status.TIMEOUT, "no answer within 0.5 s"),
    ],
)
def test_an_ending_that_takes_the_worker_has_its_seed_and_those_before(
    shared_pool: Pool, then: str, status: Status, reason: str
) -> None:
    result = shared_pool.call(many(then, timeout_s=0.5))
    assert result.status is status
    assert result.outcome.reason == f"1 of 4 seeds failed, the worst is 8: {reason}"
    assert ran(result) == [*passed(5, 6, 7), (8, status)]
    assert result.outcome.trials is not None
    assert result.outcome.trials.worst == 8
    assert result.outcome.trials.measures == (("maa", 1e-3),)
    assert dict(result.outcome.counts) == {"seeds": 4, "failed": 1}
    assert shared_pool.call(job("ok")).status is Status.PASS


def test_a_death_with_the_first_seed_has_no_others(shared_pool: Pool) -> None:
    result = shared_pool.call(many("abort", at=5))
    assert result.outcome.reason.startswith("with seed 5: aborted")
    assert ran(result) == [(5, Status.CRASH)]


def test_an_error_ends_one_seed_only(shared_pool: Pool) -> None:
    result = shared_pool.call(many("raises"))
    assert result.status is Status.ERROR
    assert ran(result) == [*passed(5, 6, 7), (8, Status.ERROR), *passed(9, 10)]


def test_what_no_record_can_hold_is_an_error_of_the_case(shared_pool: Pool) -> None:
    result = shared_pool.call(many("numpy_metric", at=5))
    assert result.status is Status.ERROR
    assert "float32" in result.outcome.reason


def test_a_case_that_is_not_run_is_so_at_once(shared_pool: Pool) -> None:
    result = shared_pool.call(many("unsupported", at=5))
    assert result.outcome == Outcome(Status.UNSUPPORTED, "no kernel for SIN")
    assert shared_pool.call(many("invalid", at=5)).outcome.invalid_case


def test_the_limit_of_time_is_for_each_seed(shared_pool: Pool) -> None:
    made = many("ok", at=99, timeout_s=0.5)
    made = replace(made, settings=replace(made.settings, seeds=50))
    started = time.monotonic()
    result = shared_pool.call(made)
    assert time.monotonic() - started > 2 * made.timeout_s
    assert result.status is Status.PASS


def test_a_crash_that_does_not_come_again_leaves_a_note_with_its_seed(shared_pool: Pool, tmp_path: Path) -> None:
    result = shared_pool.call(many("flaky", path=str(tmp_path / "seen")))
    assert result.status is Status.PASS
    assert ran(result) == passed(5, 6, 7, 8, 9, 10)
    assert "crashed once (1 of 4 seeds failed, the worst is 8: aborted without a message)" in result.outcome.notes[0]


def test_a_known_failure_is_known_with_any_seed(shared_pool: Pool) -> None:
    known = KnownFailure("at_seed", Status.FAIL, "upstream", "0.15.3")
    assert shared_pool.call(many("fails", known=[known])).status is Status.XFAIL
    assert shared_pool.call(many("ok", at=99, known=[known])).status is Status.XPASS
    assert shared_pool.call(many("abort", known=[known])).status is Status.CRASH


def test_a_process_that_comes_back_out_of_a_mode_runs_no_seeds(shared_pool: Pool) -> None:
    result = shared_pool.call(many("forks"))
    assert result.status is Status.PASS
    assert ran(result) == passed(5, 6, 7, 8, 9, 10)


def test_in_process_gives_the_same_results() -> None:
    seen = []
    for isolate in (True, False):
        with Pool(options(isolate=isolate)) as pool:
            results = [pool.call(many(then)) for then in ("ok", "fails", "raises", "unsupported")]
            seen.append([(result.status, result.outcome.reason, ran(result)) for result in results])
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "line",
    [
        b'{"index":3,"outcome":{}}',
        b'{"progress":{"index":4,"seed":1,"measures":[],"trial":null}}',  # another job's
        b'{"progress":{"index":3}}',
        b'{"progress":',
        b'{"progress":{"index":3,"seed":1,"measures":7,"trial":null}}',
        b'{"progress":{"index":3,"seed":1,"measures":[],"trial":{"seed":"x"}}}',
    ],
)
def test_what_is_no_progress_is_left_to_others(line: bytes) -> None:
    assert not Progress().hear(line, 3)


def test_without_progress_an_ending_is_as_it_was() -> None:
    outcome = Outcome(Status.CRASH, "aborted")
    assert Progress().ended(outcome) is outcome
