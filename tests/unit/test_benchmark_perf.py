"""Reading the perf log of the C++ tool, and what is made of it."""

import pytest

from benchmarks.cpp_tool import parse_perf_log
from benchmarks.perf_against_cpp import Pair, Row
from benchmarks.perf_cases import PERF_CASES
from gradcheck.cases import load_families
from gradcheck.cases.expand import expand

BLUE, END = "\x1b[1;34m", "\x1b[0m"

# The lines are those of test-backend-ops at ggml 0.15.3.
LOG = f"""Testing 1 devices

  SUM(type=f32,ne=[8192,1,1,1]):               49146 runs -    23.22 us/run -       32 kB/run - {BLUE}   1.31 GB/s{END}
  SUM(type=f32,ne=[8192,8192,1,1]):                 32 runs - 178504.94 us/run - 262144 kB/run - {BLUE}   1.44 GB/s{END}
  MUL_MAT(type_a=f16,m=4,n=1): 8192 runs -     2.50 us/run - 117.44 MFLOP/run - {BLUE} 46.98 GFLOPS{END}
  SSM_CONV(type=f32): not supported
  Backend CPU: {BLUE}OK{END}
"""


def test_times_and_runs() -> None:
    found = parse_perf_log(LOG)
    assert {case: time.runs for case, time in found.items()} == {
        "SUM(type=f32,ne=[8192,1,1,1])": 49146,
        "SUM(type=f32,ne=[8192,8192,1,1])": 32,
        "MUL_MAT(type_a=f16,m=4,n=1)": 8192,
    }
    assert [time.mean_s for time in found.values()] == pytest.approx([23.22e-6, 0.17850494, 2.5e-6])


def test_ratios_are_taken_round_by_round() -> None:
    """The machine was three times slower in one round, for both."""
    pairs = (Pair(1.0, 1.02, 1.0, 0.0), Pair(3.0, 3.06, 3.0, 0.5), Pair(1.0, 1.04, 1.1, 0.0))
    row = Row("SUM()", pairs)
    assert row.ratio == pytest.approx(1.02)
    assert row.mean_ratio == pytest.approx(1.0)
    assert row.foreign == 0.0


def test_the_chosen_cases_are_thirty_perf_cases_of_ours() -> None:
    ids = {case.id for case in expand(load_families(()), "perf")}
    assert len(set(PERF_CASES)) == len(PERF_CASES) == 30
    assert set(PERF_CASES) <= ids
