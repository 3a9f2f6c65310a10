"""CSV and Markdown of fabricated runs, read as other programs read them."""

import csv
from dataclasses import replace

from gradcheck.model.result import Metric, Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports import FORMATS
from gradcheck.reports.csv import COLUMNS
from gradcheck.reports.view import View
from tests.unit.test_reports import every_status, info, result

#: The header of `test-backend-ops support --output csv` in ggml 0.15.3, byte by byte.
HEADER = '"backend_name","op_name","op_params","test_mode","supported","error_message","backend_reg_name"'


def answered(op: str, forward: int, *backward: int, target: str = "CPU", status: Status = Status.PASS) -> Result:
    counts = (("forward", forward), *(("backward", answer) for answer in backward))
    return replace(result(status, op=op, mode="support", counts=counts), target=target)


def support(*results: Result) -> Run:
    return Run(info("support", len(results)), results, 1.0)


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(FORMATS["csv"](run, View()).splitlines()))


def test_support_has_the_header_and_the_quotes_of_the_cpp_tool() -> None:
    lines = FORMATS["csv"](support(answered("SILU", 1)), View()).splitlines()
    assert lines == [HEADER, '"CPU","SILU","type=f32,ne=[4,1,1,1]","support","1","yes","CPU"']


def test_a_script_that_reads_support_rows_sees_one_a_case() -> None:
    run = support(answered("SILU", 1, 1), answered("NORM", 1, 0), answered("FILL", 0, status=Status.UNSUPPORTED))
    found = {r["op_name"]: (r["supported"], r["error_message"]) for r in rows(run) if r["test_mode"] == "support"}
    assert found == {"SILU": ("1", "yes"), "NORM": ("1", "yes"), "FILL": ("0", "no")}
    backward = {r["op_name"]: r["error_message"] for r in rows(run) if r["test_mode"] == "support_backward"}
    assert backward == {"SILU": "yes", "NORM": "no"}


def test_a_case_that_crashed_is_not_supported() -> None:
    crashed = result(Status.CRASH, mode="support", reason="aborted")
    assert [(r["supported"], r["error_message"]) for r in rows(support(crashed))] == [("0", "no")]


def test_other_modes_have_the_whole_record() -> None:
    metrics = (Metric("time", 2e-6, unit="s"), Metric("flops", 5e9, unit="FLOPS"), Metric("bandwidth", 3.0 * 2**30))
    timed = result(mode="perf", metrics=metrics, counts=(("runs", 40), ("bytes", 4096)))
    (row,) = rows(Run(info("perf"), (timed,), 1.0))
    assert tuple(row) == COLUMNS
    assert row["test_time"] == "2025-01-01T00:00:00Z"
    assert (row["time_us"], row["flops"], row["bandwidth_gb_s"]) == ("2.000000", "5000000000.000000", "3.000000")
    assert (row["memory_kb"], row["n_runs"], row["test_mode"], row["build_commit"]) == ("4", "40", "perf", "abc1234")
    assert (row["backend_reg_name"], row["device_description"]) == ("CPU", "A processor")


def test_eval_is_test_and_every_status_is_told() -> None:
    run = every_status()
    found = {r["op_name"].removeprefix("OP_OF_"): (r["supported"], r["passed"]) for r in rows(run)}
    assert found["PASS"] == found["XFAIL"] == ("1", "1")
    assert found["UNSUPPORTED"] == ("0", "0")
    assert {found[s] for s in ("FAIL", "CRASH", "TIMEOUT", "VACUOUS", "XPASS")} == {("1", "0")}
    evaluated = Run(info("eval"), (result(mode="eval"),), 1.0)
    assert rows(evaluated)[0]["test_mode"] == "test"


def test_quotes_and_line_ends_in_a_reason_stay_in_their_cell() -> None:
    (row,) = rows(Run(info(), (result(Status.FAIL, reason='it said "no",\nand ended'),), 1.0))
    assert row["error_message"] == 'it said "no", and ended'


def markdown_rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_the_matrix_has_ops_by_targets() -> None:
    run = support(
        answered("SILU", 1, 1),
        answered("SILU", 1, 0),
        answered("ARANGE", 1),
        answered("SILU", 0, 0, target="BLAS", status=Status.UNSUPPORTED),
        answered("SILU", 0, 0, target="BLAS", status=Status.UNSUPPORTED),
    )
    text = FORMATS["markdown"](run, View())
    assert markdown_rows(text) == [
        ["op", "CPU forward", "CPU backward", "BLAS forward", "BLAS backward"],
        ["---"] * 5,
        ["ARANGE", "✅", "-", "-", "-"],
        ["SILU", "✅", "🟡 1 of 2", "❌", "❌"],
    ]


def test_other_modes_have_the_columns_of_the_text_table() -> None:
    run = Run(info("grad", 3), (result(), result(Status.FAIL), result(op="A|B")), 1.0)
    table = markdown_rows(FORMATS["markdown"](run, View()).replace(r"\|", "/"))
    assert table[0][:3] == ["op", "pass", "fail"]
    assert [row[:3] for row in table[2:]] == [["SILU", "1", "1"], ["A/B", "1", "0"], ["total", "2", "1"]]
    assert "3 cases on CPU: 2 pass, 1 fail" in FORMATS["markdown"](run, View())
