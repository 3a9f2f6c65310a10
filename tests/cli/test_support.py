"""`gradcheck support` with the real ggml, as scripts and pages take it."""

import csv
import json

from tests.cli.test_whole_runs import run

OPS = "SILU,NORM,ARANGE,FLASH_ATTN_BACK"


def test_csv_says_what_the_cpu_takes_both_ways() -> None:
    done = run("support", "-b", "cpu", "-o", OPS, "--format", "csv")
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, set[str]]] = {"support": {}, "support_backward": {}}
    for row in csv.DictReader(done.stdout.splitlines()):
        assert (row["backend_name"], row["backend_reg_name"]) == ("CPU", "CPU")
        found[row["test_mode"]].setdefault(row["op_name"], set()).add(row["error_message"])
    assert found["support"] == {"SILU": {"yes"}, "NORM": {"yes"}, "ARANGE": {"yes"}, "FLASH_ATTN_BACK": {"no"}}
    # ARANGE has no input at all.
    assert found["support_backward"] == {"SILU": {"yes"}, "NORM": {"no"}, "FLASH_ATTN_BACK": {"no"}}


def test_a_case_of_the_cpp_tool_has_the_row_that_it_prints() -> None:
    done = run("support", "-b", "cpu", "--format", "csv", "-o", "SILU", "-p", "^type=f16,ne_a=.128,2,2,2.,v=0$")
    assert done.stdout.splitlines()[1:] == ['"CPU","SILU","type=f16,ne_a=[128,2,2,2],v=0","support","1","yes","CPU"']


def test_markdown_beside_the_table() -> None:
    done = run("support", "-b", "cpu", "-o", OPS, "--format", "markdown")
    lines = done.stdout.splitlines()
    assert lines[0] == "| op | CPU forward | CPU backward |"
    assert "| ARANGE | ✅ | - |" in lines
    assert "| FLASH_ATTN_BACK | ❌ | ❌ |" in lines
    assert "| NORM | ✅ | ❌ |" in lines


def test_a_graph_that_ggml_has_not_finished_is_listed_with_the_reason() -> None:
    done = run("list", "--graph", "--mode", "support", "-o", "FLASH_ATTN_BACK", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        record = json.loads(line)
        assert (record["out"], record["tensors"]) == (-1, [])
        assert record["reason"].startswith("ggml has not finished flash_attn_back: TODO")
    text = run("list", "--graph", "--mode", "support", "-o", "FLASH_ATTN_BACK").stdout
    assert "none: ggml has not finished flash_attn_back: TODO" in text
