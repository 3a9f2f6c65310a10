"""Reading the log of the C++ tool: what was compared, and what only looks like it."""

from benchmarks.cpp_tool import CppCase, Verdict, parse_log

GREEN, RED, END = "\x1b[1;32m", "\x1b[1;31m", "\x1b[0m"

# The lines are those of test-backend-ops at ggml 0.15.3; the first OK of a case is an announcement.
LOG = f"""Testing 1 devices

Backend 1/1: CPU
  Device description: A processor
  Device memory: 24105 MB (24105 MB free)

  SILU(type=f16,ne_a=[5,7,11,13],v=0): not supported [out->type != FP32]
  SILU(type=f32,ne_a=[5,7,11,13],v=0): {GREEN}OK{END}
  SUM(type=f32,ne_a=[5,7,11,13],v=0): {GREEN}OK{END}
  SILU(type=f32,ne_a=[5,7,11,13],v=1): {GREEN}OK{END}
  SILU(type=f32,ne_a=[5,7,11,13],v=1): skipping large tensors for speed
  EXPM1(type=f32,ne_a=[128,2,2,2],v=0): {GREEN}OK{END}
  SUM(type=f32,ne_a=[128,2,2,2],v=0): [SUM] nonfinite gradient at index 5 (CPU=inf) {RED}FAIL{END}
  SUM(type=f32,ne_a=[128,2,2,2],v=0): compare failed {RED}FAIL{END}
  SCALE(type=f32,ne=[10,1,1,1],scale=2.000000,bias=1.000000): {GREEN}OK{END}
  SUM(type=f32,ne=[10,1,1,1],scale=2.000000,bias=1.000000): [SUM] MAA = 0.000732959 > 0.000100000 {RED}FAIL{END}
  SUM(type=f32,ne=[10,1,1,1],scale=2.000000,bias=1.000000): compare failed {RED}FAIL{END}
  MUL(type=f32,ne=[16,5,4,3]): {GREEN}OK{END}
  MUL(type=f32,ne=[16,5,4,3]): not supported [MUL]
  SUM(type=f32,ne=[10,5,4,3]): {GREEN}OK{END}
  SUM(type=f32,ne=[10,5,4,3]): {GREEN}OK{END}
  17760/17760 tests passed
  Backend CPU: {GREEN}OK{END}
1/1 backends passed
"""

ABORTED = f"""  SET(ne=[6,5,4,3],dim=1,inplace=0): {GREEN}OK{END}
  SUM(ne=[6,5,4,3],dim=1,inplace=0): {GREEN}OK{END}
  SET(ne=[6,5,4,3],dim=1,inplace=1): """  # the buffered OK is lost

MESSAGE = """
/x/vendor/ggml/src/ggml.c:6887: ggml_compute_backward: unsupported ggml op for backward pass: DIAG

"""


def test_verdicts() -> None:
    log = parse_log(LOG)
    assert log.cases == (
        CppCase("SILU(type=f16,ne_a=[5,7,11,13],v=0)", Verdict.UNSUPPORTED),
        CppCase("SILU(type=f32,ne_a=[5,7,11,13],v=0)", Verdict.OK),
        CppCase("SILU(type=f32,ne_a=[5,7,11,13],v=1)", Verdict.SKIPPED),
        CppCase("EXPM1(type=f32,ne_a=[128,2,2,2],v=0)", Verdict.NONFINITE),
        CppCase("SCALE(type=f32,ne=[10,1,1,1],scale=2.000000,bias=1.000000)", Verdict.FAIL),
        CppCase("MUL(type=f32,ne=[16,5,4,3])", Verdict.UNSUPPORTED),
        CppCase("SUM(type=f32,ne=[10,5,4,3])", Verdict.OK),
    )
    assert log.abort == ""


def test_only_numeric_comparisons_count_as_compared() -> None:
    assert parse_log(LOG).compared == {
        "SILU(type=f32,ne_a=[5,7,11,13],v=0)": Verdict.OK,
        "SCALE(type=f32,ne=[10,1,1,1],scale=2.000000,bias=1.000000)": Verdict.FAIL,
        "SUM(type=f32,ne=[10,5,4,3])": Verdict.OK,
    }


def test_an_announcement_is_not_a_verdict() -> None:
    announced = "\n".join(line for line in LOG.splitlines() if line.startswith("  SILU(type=f32,ne_a=[5,7,11,13],v=0)"))
    assert parse_log(announced).cases == (CppCase("SILU(type=f32,ne_a=[5,7,11,13],v=0)", Verdict.UNFINISHED),)
    assert parse_log(announced).compared == {}


def test_abort() -> None:
    log = parse_log(ABORTED, MESSAGE)
    assert [case.verdict for case in log.cases] == [Verdict.OK, Verdict.UNFINISHED]
    assert log.cases[1].case_id == "SET(ne=[6,5,4,3],dim=1,inplace=1)"
    assert log.abort == "ggml.c:6887: ggml_compute_backward: unsupported ggml op for backward pass: DIAG"


def test_one_id_twice_is_one_case_and_a_failure_outweighs() -> None:
    good = f"  CPY(n=1): {GREEN}OK{END}\n  SUM(n=1): {GREEN}OK{END}\n"
    bad = f"  CPY(n=1): {GREEN}OK{END}\n  SUM(n=1): compare failed {RED}FAIL{END}\n"
    assert parse_log(good + bad + good).compared == {"CPY(n=1)": Verdict.FAIL}
