"""The BLAS device: two ops, from a size on, on the CPU's memory."""

from pathlib import Path

import pytest

from tests.device.serving import endings, record, run

pytestmark = pytest.mark.blas

FAMILIES = """
- {op: MUL_MAT, inputs: {a: [48, 40], b: [48, 36]}, graph: "out = mul_mat(a, b)"}
- {op: BATCHED, inputs: {a: [48, 40, 2, 3], b: [48, 36, 2, 3]}, graph: "out = mul_mat(a, b)"}
- {op: OUT_PROD, inputs: {a: [40, 33], b: [36, 33]}, graph: "out = out_prod(a, b)"}
- {op: SMALL, inputs: {a: [4, 4], b: [4, 4]}, graph: "out = mul_mat(a, b)"}
"""
TOO_SMALL = ("UNSUPPORTED", "BLAS does not take MUL_MAT(f32 [4,4,1,1], f32 [4,4,1,1])")


@pytest.fixture
def families(tmp_path: Path) -> str:
    file = tmp_path / "blas.yaml"
    file.write_text(FAMILIES)
    return str(file)


def test_eval_against_the_cpu(families: str) -> None:
    found = record("eval", "-b", "blas", "--case", families)
    assert endings(found) == {
        "MUL_MAT": ("PASS", ""),
        "BATCHED": ("PASS", ""),
        "OUT_PROD": ("PASS", ""),
        "SMALL": TOO_SMALL,
    }


def test_grad_runs_where_forward_and_backward_are_taken(families: str) -> None:
    found = record("grad", "-b", "blas", "--case", families)
    assert endings(found) == {
        "MUL_MAT": ("PASS", ""),
        "BATCHED": ("UNSUPPORTED", "BLAS does not take OUT_PROD(f32 [48,36,2,3], f32 [40,36,2,3])"),
        "OUT_PROD": ("UNSUPPORTED", "unsupported ggml op for backward pass: OUT_PROD"),
        "SMALL": TOO_SMALL,
    }
    judged = {name for name, _ in found["results"][0]["outcome"]["counts"]}
    assert "judged" in judged


SCHEDULED = """
- {op: MUL_MAT, inputs: {a: [48, 40], b: [48, 36]}, graph: "out = mul_mat(a, b)", expect: {placement: target}}
- {op: ADD, inputs: {a: [48, 40], b: [48, 40]}, graph: "out = add(a, b)"}
- {op: WANTED, inputs: {a: [48, 40], b: [48, 40]}, graph: "out = add(a, b)", expect: {placement: target}}
- {op: SMALL, inputs: {a: [4, 4], b: [4, 4]}, graph: "out = mul_mat(a, b)", expect: {placement: cpu}}
- {op: MIXED, inputs: {a: [48, 40], b: [48, 36]}, graph: "out = sqr(mul_mat(a, b))"}
"""


@pytest.mark.parametrize("backward", [False, True])
def test_through_the_scheduler_the_cpu_does_what_blas_does_not(backward: bool, tmp_path: Path) -> None:
    file = tmp_path / "scheduled.yaml"
    file.write_text(SCHEDULED)
    found = record("eval", "-b", "blas", "--sched", "--case", str(file), *(["--backward"] if backward else []))
    on_cpu = "ADD ran on CPU, the case expects it on the target"
    out_prod = "OUT_PROD ran on BLAS, the case expects it on the CPU"
    assert endings(found) == {
        "MUL_MAT": ("PASS", ""),
        "ADD": ("PASS", ""),
        "WANTED": ("FAIL", on_cpu),
        "SMALL": ("FAIL", out_prod) if backward else ("PASS", ""),
        "MIXED": ("PASS", ""),
    }
    places = {result["op"]: result["outcome"]["placement"] for result in found["results"]}
    assert all(place["fallback"] == "CPU" for place in places.values())
    assert {device for _, device in places["MUL_MAT"]["nodes"]} == {"BLAS"}
    assert places["ADD"]["nodes"][0] == ["ADD", "CPU"]
    assert places["MIXED"]["nodes"][:2] == [["MUL_MAT", "BLAS"], ["SQR", "CPU"]]
    assert places["MIXED"]["splits"] > 1


def test_the_report_says_where_things_ran(tmp_path: Path) -> None:
    file = tmp_path / "scheduled.yaml"
    file.write_text(SCHEDULED)
    done = run("eval", "-b", "blas", "--sched", "--case", str(file))
    assert done.returncode == 1
    assert "placed   ADD on CPU\n" in done.stdout
    assert "\nplacement: 1 case on BLAS, 3 on CPU, 1 on both\n" in done.stdout
    assert run("eval", "-b", "blas", "--case", str(file), "-o", "MUL_MAT").returncode == 0
