"""The reports of fabricated runs."""

import math
import shlex
from dataclasses import replace
from io import StringIO

import pytest

from gradcheck.model.case import KnownFailure
from gradcheck.model.job import Settings
from gradcheck.model.place import Place
from gradcheck.model.result import Evidence, Metric, Outcome, Result
from gradcheck.model.run import DeviceInfo, LibraryInfo, Run, RunInfo
from gradcheck.model.status import Status
from gradcheck.reports import FORMATS
from gradcheck.reports.exit_code import ExitCode, exit_code
from gradcheck.reports.json import read_json, render_json
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.summary import summary_line
from gradcheck.reports.table import result_tables
from gradcheck.reports.text import render_text
from gradcheck.reports.view import PLAIN_WIDTH, Detail, View, console_for, view_of
from gradcheck.reports.wording import against_limit, bound, duration, measured_time, rate, scientific

CPU = DeviceInfo("CPU", "A processor", "CPU", "CPU", 0, 2**35)
LIBRARY = LibraryInfo("0.15.3", "abc1234", "0.0.45", "/x/libggml.so", (CPU,))
KNOWN = KnownFailure("grad", Status.FAIL, "repeated rows are lost", "0.15.3")
PLAIN = View()


def info(mode: str = "grad", jobs: int = 1) -> RunInfo:
    return RunInfo(
        mode=mode,
        command=("gradcheck", mode),
        targets=("CPU",),
        settings=Settings(),
        jobs=jobs,
        cases=jobs,
        library=LIBRARY,
        gradcheck_version="0.1.0",
        python_version="3.11.4",
        numpy_version="2.0.0",
        platform="Linux",
        started="2025-01-01T00:00:00+00:00",
    )


def result(status: Status = Status.PASS, op: str = "SILU", mode: str = "grad", **outcome: object) -> Result:
    place = Place(f"cases/{op.lower()}.yaml", 12)
    values = {"status": status, **outcome}
    return Result(0, mode, op, f"{op}(type=f32,ne=[4,1,1,1])", "CPU", place, status, Outcome(**values), 0.1)  # type: ignore[arg-type]


def run_of(*results: Result, mode: str = "grad") -> Run:
    return Run(info(mode, len(results)), results, 12.3)


def every_status() -> Run:
    return run_of(*(result(status, op=f"OP_OF_{status}", reason=f"why {status}") for status in Status))


WRONG = result(
    Status.FAIL,
    reason="3 of 512 elements are off",
    metrics=(Metric("maa", 0.32, 1e-4), Metric("element", math.nan, 1e-2), Metric("rel_l2", 1e-5, 1e-2)),
    evidence=(
        Evidence("a", (3, 0, 1, 1), 1 / 3, 1.0, 0.5, 1e-7),
        Evidence("a", (127, 1, 1, 1), -1234.56789, math.nan, math.nan, math.inf),
    ),
    counts=(("judged", 510), ("kink", 2)),
    notes=("the backward pass is not repeatable",),
    diagnosis=("a: backprop is 0 in the last row (i1 = 1): 128 of 512 elements", "b: backprop is NaN everywhere"),
)


def test_a_failure_shows_its_evidence() -> None:
    text = render_text(run_of(WRONG), PLAIN)
    assert "FAIL SILU(type=f32,ne=[4,1,1,1])" in text
    assert "at       cases/silu.yaml:12" in text
    assert "why      3 of 512 elements are off" in text
    assert "maa 3.2e-1 > 1e-4" in text
    assert "element nan, not <= 1e-2" in text
    assert "rel_l2 1.0e-5 <= 1e-2" in text
    assert "510 judged, 2 kink" in text
    assert "hint     a: backprop is 0 in the last row (i1 = 1): 128 of 512 elements\n" in text
    assert "\n           b: backprop is NaN everywhere\n" in text
    assert text.index("worst") < text.index("hint") < text.index("note")
    assert "note     the backward pass is not repeatable" in text
    assert "repeat   gradcheck grad -b CPU -o 'SILU(type=f32,ne=[4,1,1,1])' --seed 0\n" in text


def test_evidence_stands_in_columns() -> None:
    lines = render_text(run_of(WRONG), PLAIN).splitlines()
    start = next(i for i, line in enumerate(lines) if "backprop" in line)
    assert lines[start].split() == ["worst", "element", "backprop", "numeric", "asymmetry", "uncertainty"]
    assert lines[start + 1].split() == ["a[3,0,1,1]", "0.3333333", "1", "5.0e-1", "1.0e-7"]
    assert lines[start + 2].split() == ["a[127,1,1,1]", "-1234.568", "nan", "nan", "inf"]
    assert len({len(line) for line in lines[start : start + 3]}) == 1


@pytest.mark.parametrize("status", [s for s in Status if s.bad])
def test_every_bad_case_is_told(status: Status) -> None:
    text = render_text(every_status(), PLAIN)
    assert f"{status} OP_OF_{status}(" in text
    assert f"why {status}" in text
    assert f"-o 'OP_OF_{status}(type=f32,ne=[4,1,1,1])'" in text


@pytest.mark.parametrize("status", [s for s in Status if not s.bad])
def test_a_good_case_is_told_only_when_asked(status: Status) -> None:
    assert f"why {status}" not in render_text(every_status(), PLAIN)
    verbose = render_text(every_status(), View(detail=Detail.VERBOSE))
    assert f"why {status}" in verbose


def test_quiet_is_ids_and_summary() -> None:
    lines = render_text(every_status(), View(detail=Detail.QUIET)).splitlines()
    assert len(lines) == sum(s.bad for s in Status) + 1
    assert lines[0] == "FAIL OP_OF_FAIL(type=f32,ne=[4,1,1,1])"
    assert lines[-1].startswith("10 cases on CPU: 1 pass, 1 fail, ")


def test_a_known_failure_says_what_is_known() -> None:
    text = render_text(run_of(replace(result(Status.XFAIL), known=KNOWN)), View(detail=Detail.VERBOSE))
    assert "repeated rows are lost (known: FAIL on ggml 0.15.3)" in text
    text = render_text(run_of(replace(result(Status.XPASS), known=KNOWN)), PLAIN)
    assert "passes, but is known to end as FAIL on ggml 0.15.3: repeated rows are lost" in text


def test_a_log_is_cut_unless_verbose_and_cannot_move_the_cursor() -> None:
    crash = replace(result(Status.CRASH), log="\n".join(f"line {i}\x1b[2J" for i in range(20)))
    text = render_text(run_of(crash), PLAIN)
    assert "the last 5 of 20 lines" in text
    assert "line 14" not in text
    assert "line 19\\x1b[2J" in text
    assert "line 0\\x1b" in render_text(run_of(crash), View(detail=Detail.VERBOSE))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_tables_fit_and_numbers_are_whole(width: int) -> None:
    run = run_of(
        *(replace(WRONG, op="CROSS_ENTROPY_LOSS_BACK", status=status) for status in Status for _ in range(1000))
    )
    file = StringIO()
    console_for(View(width), file).print(*result_tables(run, View(width)))
    table = file.getvalue().splitlines()
    assert all(len(line) <= width for line in table)
    row = next(line for line in table if line.startswith("!"))
    assert "1000" in row
    assert "nan" in row or "3.2e-1" in row
    assert "…" not in "\n".join(table)


def test_bad_rows_are_marked_without_colour() -> None:
    text = render_text(run_of(result(), result(Status.CRASH, op="ROPE")), PLAIN)
    assert "\n!  ROPE " in text
    assert "\n   SILU " in text


def test_nan_is_the_worst() -> None:
    one = result(metrics=(Metric("maa", 1.0),))
    for status, shown in ((Status.FAIL, True), (Status.PASS, False)):
        # A passing case in which nothing could be measured in this way says nothing.
        text = render_text(run_of(result(status, metrics=(Metric("maa", math.nan),)), one), PLAIN)
        table = text[text.index("MAA") : text.index("MAA") + 400].split("why")[0]
        assert ("nan" in table) == shown


def test_support_answers_yes_and_no() -> None:
    yes = result(mode="support", counts=(("forward", 1), ("backward", 1)))
    half = result(mode="support", counts=(("forward", 1), ("backward", 0)))
    none = result(Status.UNSUPPORTED, op="ABS", mode="support", counts=(("forward", 0), ("backward", 0)))
    lines = [line.split() for line in render_text(run_of(yes, half, none, mode="support"), PLAIN).splitlines()]
    assert ["SILU", "2", "yes", "1", "of", "2"] in lines
    assert ["ABS", "1", "no", "no"] in lines


def test_eval_names_its_sides() -> None:
    wrong = result(Status.FAIL, mode="eval", evidence=(Evidence("out", (0,), 1.0, 2.0, 0.3, 0.0),))
    text = render_text(run_of(wrong, mode="eval"), PLAIN)
    assert "target" in text
    assert "reference" in text


@pytest.mark.parametrize("mode", ["grad", "eval", "perf", "support"])
@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_form_takes_every_run(mode: str, form: str) -> None:
    for run in (run_of(mode=mode), run_of(WRONG, mode=mode), replace(every_status(), info=info(mode))):
        assert FORMATS[form](run, PLAIN) or form == "jsonl"


def test_plain_text_has_no_ansi_and_colour_only_adds() -> None:
    plain = render_text(every_status(), PLAIN)
    assert "\x1b" not in plain
    assert plain.isascii()
    assert "\x1b[" in render_text(every_status(), View(color=True))


def test_json_gives_the_same_run_back() -> None:
    run = run_of(WRONG, replace(result(Status.XFAIL), known=KNOWN))
    text = render_json(run, PLAIN)
    again = read_json(text)
    assert repr(again) == repr(run)  # repr, because nan is not equal to itself
    assert render_json(again, PLAIN) == text


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema_version": 99}', "no json"])
def test_json_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema|Expecting"):
        read_json(text)


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([Status.PASS], ExitCode.GOOD),
        ([Status.XFAIL], ExitCode.GOOD),
        ([Status.PASS, Status.UNSUPPORTED, Status.SKIP], ExitCode.GOOD),
        *(([Status.PASS, s], ExitCode.BAD) for s in Status if s.bad),
        ([Status.UNSUPPORTED, Status.SKIP], ExitCode.NOTHING),
        ([], ExitCode.NOTHING),
    ],
)
def test_exit_codes(statuses: list[Status], code: ExitCode) -> None:
    run = run_of(*map(result, statuses))
    assert exit_code(run) is code
    assert exit_code(replace(run, interrupted=True)) is ExitCode.INTERRUPTED


def test_an_invalid_case_is_wrong_usage() -> None:
    assert exit_code(run_of(result(Status.FAIL), result(Status.ERROR, invalid_case=True))) is ExitCode.USAGE


def test_the_repeated_command_has_all_that_differs() -> None:
    settings = Settings(seed=7, limits=(("maa", 1e-5),), cotangent="ones", max_elements=5)
    command = ("gradcheck", "grad", "--case", "my cases/a.yaml", "-j", "4", "--timeout=5", "--no-isolation")
    text = repeat_command(replace(info(), settings=settings, command=command), result(op="A'B"))
    assert "\n" not in text
    assert shlex.split(text) == [
        *("gradcheck", "grad", "-b", "CPU", "-o", "A'B(type=f32,ne=[4,1,1,1])", "--seed", "7"),
        *("--cotangent", "ones", "--max-elements", "5", "--limit", "maa=1e-05"),
        *("--case", "my cases/a.yaml", "--timeout=5", "--no-isolation"),
    ]


def test_the_repeated_command_has_the_threads_and_the_memory() -> None:
    settings = Settings(alloc="all", threads=2, more_threads=(1, 4))
    assert repeat_command(replace(info(), settings=settings), result()).endswith("--seed 0 --threads 2,1,4 --alloc all")
    assert "--alloc" not in repeat_command(info(), result())


def test_summaries() -> None:
    assert summary_line(run_of(result())) == "1 case on CPU: 1 pass; 12.3 s; seed 0"
    assert summary_line(run_of()).startswith("nothing was checked")
    none = run_of(result(Status.UNSUPPORTED, reason="no backward rule"))
    assert summary_line(none) == ("nothing was checked: 1 case on CPU: 1 unsupported; 12.3 s; seed 0; no backward rule")
    stopped = replace(run_of(result()), info=info(jobs=9), interrupted=True)
    assert summary_line(stopped) == "interrupted after 1 of 9 checks on CPU: 1 pass; 12.3 s; seed 0"


def test_the_view_of_a_pipe() -> None:
    assert view_of(StringIO(), None, Detail.NORMAL, {}) == View(PLAIN_WIDTH)
    assert view_of(StringIO(), None, Detail.NORMAL, {"COLUMNS": "60"}).width == 60
    assert view_of(StringIO(), None, Detail.NORMAL, {"COLUMNS": "wide"}).width == PLAIN_WIDTH
    assert view_of(StringIO(), True, Detail.NORMAL, {"NO_COLOR": "1"}).color


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "color", "expected"),
    [
        ({}, None, True),
        ({"NO_COLOR": "1"}, None, False),
        ({"NO_COLOR": ""}, None, True),
        ({"TERM": "dumb"}, None, False),
        ({}, False, False),
    ],
)
def test_colour_on_a_terminal(environ: dict[str, str], color: bool | None, expected: bool) -> None:
    assert view_of(Terminal(), color, Detail.NORMAL, environ).color is expected


def test_numbers_as_words() -> None:
    assert [scientific(v) for v in (0.0, 0.32, 1e-12, math.nan, -math.inf)] == ["0", "3.2e-1", "1.0e-12", "nan", "-inf"]
    assert [bound(v) for v in (1e-4, 2.5e-3, 0.0, 1.0)] == ["1e-4", "2.5e-3", "0", "1e0"]
    assert [duration(s) for s in (0.031, 9.999, 59.99, 3725.0)] == ["0.03 s", "10.0 s", "1m 00s", "1h 02m"]
    assert [measured_time(s) for s in (1.0, 0.0123, 1.234e-6, 5e-10)] == ["1.00 s", "12.3 ms", "1.23 us", "0.50 ns"]
    assert [rate(v, "B/s") for v in (0.0, 999.9, 1.5e9)] == ["0.00 B/s", "1.00 kB/s", "1.50 GB/s"]


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.32, 1e-4, "3.2e-1 > 1e-4"),
        (2e-6, 1e-4, "2.0e-6 <= 1e-4"),
        (1e-4, 1e-4, "1.0e-4 <= 1e-4"),
        (1.0000004e-4, 1e-4, "0.00010000004 > 1e-4"),
        (math.inf, 1e-4, "inf > 1e-4"),
        (math.nan, 1e-4, "nan, not <= 1e-4"),
    ],
)
def test_values_against_limits(value: float, limit: float, text: str) -> None:
    assert against_limit(value, limit) == text
