"""`gradcheck list --coverage` on the shipped cases and the real ggml: no op without a case, no gap unexplained."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_whole_runs import run

#: Ops without a case for eval, and why.
NOT_COMPUTED = {"FLASH_ATTN_BACK": "ggml_flash_attn_back aborts before it makes a tensor"}
#: What is missing where ggml has no rule to check, beside "ggml has no backward rule".
NO_BACKWARD = {
    "ARANGE": "no input of its cases is differentiated",
    "ARGMAX": "no backward: ggml makes no gradient for an output of type i32",
    "ARGSORT": "no backward: ggml makes no gradient for an output of type i32",
    "TOP_K": "no backward: ggml makes no gradient for an output of type i32",
    "CLAMP": "no backward: ggml has no backward for in-place operations",
    "SET_ROWS": "no backward: ggml has no backward for in-place operations",
    "OPT_STEP_ADAMW": "no backward: ggml has no backward for in-place operations",
    "OPT_STEP_SGD": "no backward: ggml has no backward for in-place operations",
    "FLASH_ATTN_BACK": "no backward: ggml has not finished flash_attn_back: TODO: adapt to ggml_flash_attn_ext() "
    "changes",
    # docs/findings.md, 24
    "WIN_PART": "no backward: ggml aborts while building the backward graph: "
    "GGML_ASSERT(tensor->op == GGML_OP_UNARY) failed",
    "WIN_UNPART": "no backward: ggml aborts while building the backward graph: "
    "GGML_ASSERT(tensor->op == GGML_OP_UNARY) failed",
}
OWN = """
- {op: SILU, vars: {v: [0, 1]}, inputs: {a: [10, 5]}, graph: "out = silu(a)"}
- {op: NORM, modes: [eval], inputs: {a: [10, 5]}, graph: "out = norm(a, 0.1)"}
- {op: SQR, modes: [eval], inputs: {a: [10, 5]}, graph: "out = sqr(a)"}
"""

Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def shipped() -> Rows:
    done = run("list", "--coverage", "--format", "json")
    assert done.returncode == 0, done.stderr
    return {row["op"]: row for row in json.loads(done.stdout)}


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    return str(file)


def test_the_ops_are_those_of_ggml(shipped: Rows) -> None:
    from gradcheck.api import devices

    assert list(shipped) == list(devices().ops)
    assert {"MUL_MAT", "SILU", "SWIGLU", "MAP_CUSTOM1"} <= shipped.keys()
    assert not {"NONE", "UNARY", "GLU", ""} & shipped.keys()


def test_every_op_has_a_case_for_eval(shipped: Rows) -> None:
    assert {op for op, row in shipped.items() if not row["eval"]} == NOT_COMPUTED.keys()


def test_every_backward_rule_has_a_case_for_grad(shipped: Rows) -> None:
    missing = {op: row["missing"] for op, row in shipped.items() if row["missing"]}
    assert {op: why for op, why in missing.items() if why != "ggml has no backward rule"} == NO_BACKWARD


def test_what_is_known_of_some(shipped: Rows) -> None:
    silu, norm, back = shipped["SILU"], shipped["NORM"], shipped["REPEAT_BACK"]
    assert silu["built"] == silu["tried"] > 0
    assert norm["built"] == 0 < norm["tried"]
    # The gradient of every broadcast ends in it.
    assert back["families"] > 10
    assert shipped["FLASH_ATTN_EXT"]["eval"] > 1000


def test_own_cases_as_a_table(own: str) -> None:
    done = run("list", "--coverage", "--case", own, "-o", "silu,NORM,SQ*")
    assert done.returncode == 0, done.stderr
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "op eval grad rule families missing",
        "SQR 1 0 yes 1 no case for grad, although ggml has a backward rule",
        "SQRT 0 0 - 0 no case",
        "NORM 1 0 no 1 ggml has no backward rule",
        "SILU 2 2 yes 1",
        "",
        "4 ops, 3 with cases for eval, 1 for grad with a backward rule",
    ]


def test_only_what_is_missing(own: str) -> None:
    done = run("list", "--coverage", "--missing", "--case", own, "-o", "SILU,NORM", "--format", "jsonl")
    assert [json.loads(line)["op"] for line in done.stdout.splitlines()] == ["NORM"]
    nothing = run("list", "--coverage", "--missing", "--case", own, "-o", "SILU")
    assert (nothing.returncode, nothing.stdout) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--coverage", "-o", "SILLU"], "this ggml has no op SILLU (did you mean SILU"),
        (["--coverage", "--graph"], "of --ops, --graph and --coverage only one can be given"),
        (["--coverage", "--mode", "eval"], "--coverage looks at whole ops in all modes; leave --mode and -p out"),
        (["--coverage", "-p", "x"], "--coverage looks at whole ops in all modes; leave --mode and -p out"),
        (["--missing"], "--missing goes with --coverage"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, own: str) -> None:
    done = run("list", *arguments, "--case", own)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gradcheck: error: {said}")
