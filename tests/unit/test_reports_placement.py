"""Where things ran, in words."""

from dataclasses import replace

import pytest

from gradcheck.model.job import Settings
from gradcheck.model.result import Placement, Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports.json import read_json, render_json
from gradcheck.reports.placement import placement_lines, placement_text
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.text import render_text
from gradcheck.reports.view import Detail, View
from tests.unit.test_reports import result, run_of

BLAS = Placement((("MUL_MAT", "BLAS"),), 1, "CPU")
CPU = Placement((("ADD", "CPU"), ("SQR", "CPU"), ("ADD", "CPU")), 1, "CPU")
BOTH = Placement((("MUL_MAT", "BLAS"), ("ADD", "CPU"), ("MUL_MAT", "BLAS")), 3, "CPU")
NOTHING = Placement((), 1, "CPU")


def scheduled(*results: Result) -> Run:
    run = run_of(*(replace(result, target="BLAS") for result in results), mode="eval")
    return replace(run, info=replace(run.info, targets=("BLAS",), settings=Settings(sched=True)))


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (BLAS, "MUL_MAT on BLAS"),
        (CPU, "ADD, SQR on CPU"),
        (BOTH, "MUL_MAT on BLAS; ADD on CPU; 3 splits"),
        (NOTHING, "nothing is computed"),
    ],
)
def test_the_place_of_a_case(placement: Placement, text: str) -> None:
    assert placement_text(placement) == text
    for status, detail in ((Status.FAIL, Detail.NORMAL), (Status.PASS, Detail.VERBOSE)):
        shown = render_text(scheduled(result(status, mode="eval", placement=placement)), View(detail=detail))
        assert text in shown


def test_the_places_of_a_run() -> None:
    cases = [*[CPU] * 1200, *[BOTH] * 2, BLAS, NOTHING]
    run = scheduled(
        *(result(mode="eval", placement=placement) for placement in cases),
        result(Status.CRASH, mode="eval"),
        result(Status.UNSUPPORTED, mode="eval"),
    )
    line = "placement: 1 case on BLAS, 1,200 on CPU, 2 on both, 1 unknown, 1 without anything to compute"
    assert [*placement_lines(run)] == [line]
    assert f"\n{line}\n" in render_text(run, View())
    two = replace(run, info=replace(run.info, targets=("BLAS", "CPU")))
    assert [*placement_lines(two)] == [line.replace("placement", "placement of BLAS")]


def test_without_the_scheduler_nothing_is_said_of_places() -> None:
    run = run_of(result(mode="eval"), mode="eval")
    assert [*placement_lines(run)] == []
    assert "place" not in render_text(run, View(detail=Detail.VERBOSE))


def test_the_record_and_the_repetition_have_it_all() -> None:
    run = scheduled(result(mode="eval", placement=BOTH))
    assert read_json(render_json(run, View())) == run
    assert repeat_command(run.info, run.results[0]).endswith("--seed 0 --sched")
