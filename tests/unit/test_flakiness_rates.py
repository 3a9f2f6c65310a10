"""Failure rates and margins from trials, and how reports tell of them."""

import json
import math
from dataclasses import replace

import pytest

from gradcheck.flakiness import assess
from gradcheck.flakiness.proportions import clopper_pearson
from gradcheck.model.job import Settings
from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.model.trial import Trial, Trials
from gradcheck.reports import FORMATS
from gradcheck.reports.json import read_json, render_json
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.text import render_text
from gradcheck.reports.view import Detail, View
from tests.unit.test_reports import info, result

MEASURES = (("maa", 1e-3), ("element", 5e-3), ("cosine", None))


def tried(*runs: Trial, op: str = "SILU", status: Status | None = None, worst: int = 0) -> Result:
    bad = any(run.status.bad for run in runs)
    made = result(Status.FAIL if bad else Status.PASS, op=op, trials=Trials(worst, MEASURES, runs))
    return replace(made, status=status or made.status)


def passed(seed: int, maa: float = 1e-5, element: float = 0.0) -> Trial:
    return Trial(seed, Status.PASS, (maa, element, 1.0))


def failed(seed: int, maa: float = 1e-2) -> Trial:
    return Trial(seed, Status.FAIL, (maa, 1e-3, 0.9), "maa 0.01 > 0.001")


def run_of(*results: Result, rate: float | None = None, seeds: int = 4) -> Run:
    settings = Settings(seed=10, seeds=seeds)
    told = replace(info(jobs=len(results)), settings=settings)
    return Run(told, results, 1.0, flakiness=assess(results, rate))


STEADY = tried(*(passed(seed, maa=2e-4) for seed in range(10, 14)), op="ADD", worst=10)
FLAKY = tried(passed(10), failed(11, 2e-3), passed(12), failed(13, 5e-3), worst=13)


def test_rates_are_by_case_by_op_and_in_all() -> None:
    found = assess([STEADY, FLAKY, replace(FLAKY, case_id="SILU(other)")])
    assert [(rate.op, rate.cases, rate.runs, rate.failed) for rate in found.cases] == [
        ("ADD", 1, 4, 0),
        ("SILU", 1, 4, 2),
        ("SILU", 1, 4, 2),
    ]
    assert [(rate.op, rate.cases, rate.runs, rate.failed) for rate in found.ops] == [
        ("ADD", 1, 4, 0),
        ("SILU", 2, 8, 4),
    ]
    (total,) = found.totals
    assert (total.cases, total.runs, total.failed) == (3, 12, 4)
    assert total.rate == pytest.approx(1 / 3)
    assert (total.low, total.high) == clopper_pearson(4, 12)


def test_each_target_has_its_own_total() -> None:
    found = assess([STEADY, replace(STEADY, target="CUDA0")])
    assert [(rate.target, rate.runs) for rate in found.totals] == [("CPU", 4), ("CUDA0", 4)]


def test_the_margin_names_metric_case_and_seed() -> None:
    (rate,) = assess([FLAKY]).cases
    worst = rate.margins[0]
    assert (worst.metric, worst.value, worst.limit, worst.seed) == ("maa", 5e-3, 1e-3, 13)
    assert worst.of_limit == pytest.approx(5)
    assert worst.case_id == FLAKY.case_id
    assert [margin.metric for margin in rate.margins] == ["maa", "element"]


def test_what_is_no_number_is_a_failure_but_no_margin() -> None:
    crashed = Trial(11, Status.CRASH, (), "aborted")
    (rate,) = assess([tried(Trial(10, Status.FAIL, (math.nan, 1e-3, 1.0)), crashed)]).cases
    assert rate.failed == 2
    assert [(margin.metric, margin.seed) for margin in rate.margins] == [("element", 10)]


def test_known_failures_and_untried_cases_are_in_no_rate() -> None:
    found = assess([STEADY, replace(FLAKY, status=Status.XFAIL), result(Status.UNSUPPORTED)])
    assert [rate.op for rate in found.cases] == ["ADD"]
    assert found.known == 1
    assert "1 case with a known failure left out" in render_text(run_of(replace(FLAKY, status=Status.XFAIL)), View())


def test_the_table_stands_under_that_of_the_ops() -> None:
    text = render_text(run_of(STEADY, FLAKY), View())
    lines = text.splitlines()
    at = lines.index("seeds 10 to 13 on CPU")
    assert at > lines.index("grad on CPU")
    assert lines[at + 1].split() == ["op", "cases", "runs", "failed", "rate", "95%", "interval", "nearest", "limit"]
    assert lines[at + 3].split() == ["ADD", "1", "4", "0", "0", "0", "to", "6.0e-1", "maa", "at", "20%"]
    assert lines[at + 4].split() == ["SILU", "1", "4", "2", "5.0e-1", "6.8e-2", "to", "9.3e-1", "maa", "at", "500%"]
    assert lines[at + 6].split()[:4] == ["total", "2", "8", "2"]
    assert lines[-1].endswith("; seeds 10 to 13")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_numbers_are_never_cut(width: int) -> None:
    text = render_text(run_of(STEADY, FLAKY), View(width=width))
    assert "6.8e-2 to 9.3e-1" in text
    assert "maa at 500%" in text


def test_a_failure_names_its_seeds_and_repeats_the_worst() -> None:
    run = run_of(STEADY, FLAKY)
    text = render_text(run, View())
    assert "seeds    11, 13 fail: a rate of 5.0e-1 (6.8e-2 to 9.3e-1)\n" in text
    assert "--seed 13\n" in text
    assert repeat_command(run.info, FLAKY).endswith("--seed 13")
    assert repeat_command(run.info, result(Status.CRASH)).endswith("--seed 10")


def test_many_failing_seeds_are_counted() -> None:
    text = render_text(run_of(tried(*(failed(seed) for seed in range(10, 40)))), View())
    assert "10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 20 more fail" in text


def test_each_case_has_its_rate_in_a_verbose_report() -> None:
    text = render_text(run_of(STEADY, FLAKY), View(detail=Detail.VERBOSE))
    assert "0 of 4 seeds failed: 0 (0 to 6.0e-1), maa at 20% of its limit" in text


def test_limits_are_a_table_of_their_own() -> None:
    steady = tried(*(passed(seed, maa=1e-6 * (1 + seed / 1000)) for seed in range(200)))
    text = render_text(run_of(steady, rate=1e-4, seeds=200), View())
    assert "limits for a failure rate of 1e-4 on CPU" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("SILU") and " tail " in line)
    assert row[:3] == ["SILU", "maa", "1e-3"]
    assert "held so far" in text
    assert "look into each failure" not in text
    text = render_text(run_of(FLAKY, rate=1e-4), View())
    assert "look into each failure before a limit is raised" in text


def test_every_form_shows_them() -> None:
    run = run_of(STEADY, FLAKY, rate=1e-4)
    for form in ("text", "markdown", "html", "svg"):
        assert "500%" in FORMATS[form](run, View(width=120)), form
    assert "| SILU | 1 | 4 | 2 | 5.0e-1 |" in FORMATS["markdown"](run, View())
    assert len(json.loads(FORMATS["jsonl"](run, View()).splitlines()[1])["outcome"]["trials"]["runs"]) == 4


def test_the_record_holds_trials_rates_and_limits() -> None:
    run = run_of(STEADY, FLAKY, rate=1e-4)
    text = render_json(run, View())
    assert read_json(text) == run
    data = json.loads(text)
    assert data["results"][1]["outcome"]["trials"]["worst"] == 13
    assert data["flakiness"]["totals"][0]["failed"] == 2
    assert {one["metric"] for one in data["flakiness"]["suggestions"]} == {"maa", "element"}


def test_a_run_with_one_seed_has_none_of_it() -> None:
    run = Run(info(), (result(),), 1.0)
    assert "seeds" not in render_text(run, View())
    assert json.loads(render_json(run, View()))["flakiness"] is None
