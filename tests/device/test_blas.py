"""The BLAS device: two ops, from a size on, on the CPU's memory."""

from pathlib import Path

import pytest

from tests.device.serving import endings, record

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
