"""--variants and ids with a variant: what runs, what is listed, and what is said of a slip."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FAMILIES = """
- {op: SQR, vars: {ne: [[4, 3], [5, 3, 2]]}, inputs: {a: {ne: ne}}, graph: "out = sqr(a)"}
- {op: LOSES, inputs: {a: [8, 3, 2]}, graph: "out = scale(a, 0)"}
"""
BIG = "SQR(ne=[5,3,2])"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "x.yaml"
    path.write_text(FAMILIES)
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradcheck", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


def statuses(*arguments: str) -> dict[str, str]:
    record: dict[str, Any] = json.loads(run("grad", "-b", "cpu", "-j", "1", *arguments, "--format", "json").stdout)
    return {result["case_id"]: result["status"] for result in record["results"]}


def test_grad_has_the_default_ones_of_one_shipped_case_of_each_op() -> None:
    found = statuses("-o", "SGN")
    assert statuses("-o", "SGN", "--variants", "default") == found
    plain = list(statuses("-o", "SGN", "--variants", "none"))
    assert [case_id for case_id in found if "+" not in case_id] == plain
    assert len({case_id.partition("+")[0] for case_id in found if "+" in case_id}) == 1
    assert {"sliced", "second_consumer:after"} <= {case_id.partition("+")[2] for case_id in found}


def test_a_file_of_ones_own_and_a_case_by_its_id_have_none_unless_asked(file: str) -> None:
    assert list(statuses("--case", file, "-o", "SQR")) == ["SQR(ne=[4,3])", BIG]
    assert list(statuses("--case", file, "-o", BIG)) == [BIG]
    assert list(statuses("--case", file, "-o", BIG, "--variants", "spike")) == [BIG, f"{BIG}+spike"]
    found = statuses("--case", file, "-o", "SQR", "--variants", "default")
    assert {case_id.partition("+")[0] for case_id in found if "+" in case_id} == {BIG}


def test_an_id_with_a_variant_runs_that_alone_and_so_does_the_command_that_repeats_it(file: str) -> None:
    asked = "LOSES()+spike"
    done = run("grad", "-b", "cpu", "--case", file, "-o", asked)
    assert done.returncode == 1
    assert f"VACUOUS {asked}" in done.stdout
    (command,) = (line.strip().removeprefix("repeat").strip() for line in done.stdout.splitlines() if "repeat " in line)
    words = shlex.split(command)
    assert words[words.index("-o") + 1] == asked
    again = run(*words[1:])
    assert again.returncode == 1
    assert command in again.stdout


def test_list_and_show(file: str) -> None:
    listed = run("list", "--case", file, "-o", "SQR", "--variants", "sliced,spike").stdout.splitlines()
    assert listed[2:] == [BIG, f"{BIG}+sliced", f"{BIG}+spike"] or listed[-3:] == [BIG, f"{BIG}+sliced", f"{BIG}+spike"]
    assert run("list", "--case", file, "-o", "SQR").stdout.splitlines() == ["SQR(ne=[4,3])", BIG]
    records = run("list", "--case", file, "-o", f"{BIG}+sliced", "--format", "jsonl", "--graph").stdout.splitlines()
    (record,) = map(json.loads, records)
    assert (record["vars"], record["variant"]) == ("ne=[5,3,2]", "sliced")
    shown = run("show", "--case", file, f"{BIG}+sliced").stdout
    assert shown.startswith(f"{BIG}+sliced\n")
    assert "variant: params are views into larger tensors" in shown
    assert "a = view_4d(a, 5, 3, 2, 1," in shown


def test_eval_has_none_unless_asked(file: str) -> None:
    plain = run("eval", "-b", "cpu", "--case", file, "-o", "SQR", "-v")
    assert plain.returncode == 0
    assert "+" not in "".join(line for line in plain.stdout.splitlines() if "SQR(" in line)
    asked = run("eval", "-b", "cpu", "--case", file, "-o", "SQR", "--variants", "sliced,special,sorted", "-v")
    assert asked.returncode == 0, asked.stdout
    assert f"PASS {BIG}+sliced" in asked.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--variants", "slised"], "there is no variant 'slised' (did you mean sliced?); there are all, default, none"),
        (["--variants", "all,sliced"], "all, default, none stand alone"),
        (["--variants", ","], "names no variant"),
        (["-o", f"{BIG}+slised"], f"{BIG} has no variant slised (did you mean sliced?)"),
        (["-o", f"{BIG}+alone:a"], f"{BIG} has no variant alone:a"),
        (["-o", "SQR(ne=[5,3,3])+sliced"], f"no grad case SQR(ne=[5,3,3]) (did you mean {BIG}"),
    ],
)
def test_a_slip_is_told(arguments: list[str], words: str, file: str) -> None:
    done = run("grad", "-b", "cpu", "--case", file, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
