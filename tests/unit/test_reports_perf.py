"""What a reader sees of perf."""

from dataclasses import replace

from gradcheck.model.job import Settings
from gradcheck.model.result import Metric, Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports.repeat import repeat_command
from gradcheck.reports.text import render_text
from gradcheck.reports.view import View
from tests.unit.test_reports import PLAIN, result, run_of

TIME = (Metric("time", 1.23e-5, unit="s"), Metric("time_q1", 1.2e-5, unit="s"), Metric("time_q3", 1.5e-5, unit="s"))
BANDWIDTH = Metric("bandwidth", 1.5e10, unit="B/s")
FLOPS = Metric("flops", 2.5e11, unit="FLOPS")
LONG = "type=f32,ne_a=[128,12,512,1],n_dims=128,mode=8,n_ctx=512,fs=1.000000,ef=0.000000,af=1.000000,ff=0,v=0,inplace=0"


def timed(*metrics: Metric, status: Status = Status.PASS, op: str = "SILU") -> Result:
    return result(status, op=op, mode="perf", metrics=metrics, counts=(("runs", 57344), ("samples", 7)))


def perf(*results: Result, backward: bool = False, threads: int = 2) -> Run:
    run = run_of(*results, mode="perf")
    return replace(run, info=replace(run.info, settings=Settings(threads=threads, backward=backward)))


def lines(run: Run, view: View = PLAIN) -> list[str]:
    return render_text(run, view).splitlines()


def row(run: Run, op: str = "SILU", view: View = PLAIN) -> list[str]:
    return next(line for line in lines(run, view) if line.startswith(f"{op}(")).split()


def test_a_row_has_time_spread_rate_and_runs() -> None:
    expected = ["SILU(type=f32,ne=[4,1,1,1])", "12.3", "us", "24%", "15.0", "GB/s", "57,344"]
    assert row(perf(timed(*TIME, BANDWIDTH))) == expected


def test_declared_operations_come_before_bytes() -> None:
    assert row(perf(timed(*TIME, FLOPS, BANDWIDTH)))[4:6] == ["250", "GFLOPS"]


def test_the_whole_graph_has_a_column_where_a_case_has_several_ops() -> None:
    several = timed(*TIME, Metric("graph_time", 4.5e-4, unit="s"), BANDWIDTH, op="FUSED")
    run = perf(timed(*TIME, BANDWIDTH), several)
    assert "whole graph" in next(line for line in lines(run) if line.startswith("case"))
    assert row(run, "FUSED")[-3:] == ["450", "us", "57,344"]
    assert row(run)[-2:] == ["-", "57,344"]
    assert "whole graph" not in render_text(perf(timed(*TIME, BANDWIDTH)), PLAIN)


def test_a_case_without_a_time_says_how_it_ended() -> None:
    run = perf(timed(*TIME), timed(status=Status.UNSUPPORTED, op="CEIL"), timed(status=Status.CRASH, op="ROPE"))
    unsupported = next(line for line in lines(run) if "CEIL(" in line)
    assert unsupported.split()[1] == "unsupported"
    crashed = next(line for line in lines(run) if line.startswith("!"))
    assert crashed.split()[:3] == ["!", "ROPE(type=f32,ne=[4,1,1,1])", "crash"]


def test_backward_is_named_and_has_no_rate() -> None:
    text = render_text(perf(timed(*TIME), backward=True), PLAIN)
    assert "perf on CPU (the backward pass alone)" in text
    assert "rate" not in text


def test_the_header_tells_the_threads() -> None:
    assert lines(perf(timed(*TIME), threads=8))[0].endswith("CPU (A processor), 8 CPU threads")
    assert lines(perf(timed(*TIME), threads=1))[0].endswith(", 1 CPU thread")
    assert "thread" not in render_text(run_of(), PLAIN)


def test_the_command_that_repeats_a_time_has_its_threads() -> None:
    for threads in (1, 2):
        run = perf(timed(*TIME), threads=threads)
        assert f"--threads {threads}" in repeat_command(run.info, run.results[0])
    assert "--threads" not in repeat_command(run_of(result()).info, result())


def test_long_ids_leave_room_for_the_numbers() -> None:
    case = replace(timed(*TIME, BANDWIDTH), case_id=f"ROPE({LONG})")
    for width in (40, 80, 120):
        shown = lines(perf(case), View(width=width))
        table = shown[shown.index("perf on CPU") :]
        assert all(len(line) <= width for line in table[:-1])
        assert any("12.3 us" in line for line in table)
    wide = next(line for line in lines(perf(case), View(width=80)) if line.startswith("ROPE("))
    assert wide.split()[-1] == "57,344"
    assert len(wide.split()[0]) >= 38
