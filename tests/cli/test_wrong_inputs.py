"""What a user gets wrong, each with one clear line and exit code 2; through the real workers where ggml must judge."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = [sys.executable, "-m", "gradcheck"]
FAMILY = "op: X\ninputs: {a: [4, 4]}\ngraph: out = silu(a)\n"
SWEEP = "vars: {" + ", ".join(f"v{i}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" for i in range(6)) + "}\n"

# name -> (the file, what is said)
FILES: dict[str, tuple[bytes | str, str]] = {
    "YAML syntax": ("op: [\n", ":2: not YAML"),
    "a tab": ("op: X\n\tinputs: 1\n", ":2: not YAML"),
    "empty": ("", ":1: no cases: the file is empty"),
    "a list of numbers": ("[1, 2]\n", "a family must be a mapping"),
    "unknown key": (FAMILY + "grpah: x\n", ":4: unknown key `grpah` in a family (did you mean graph?)"),
    "key twice": (FAMILY + "op: Y\n", ":4: `op` stands here twice"),
    "missing key": ("op: X\ngraph: out = silu(a)\n", ":1: a family needs `inputs`"),
    "op of the wrong kind": (FAMILY.replace("X", "7"), ":1: `op` must be text"),
    "negative shape": (FAMILY.replace("[4, 4]", "[4, -4]"), ":2: the shape of a is [4, -4]"),
    "fractional shape": (FAMILY.replace("[4, 4]", "[4.5]"), ":2: the shape of a is [4.5]"),
    "shape of five": (FAMILY.replace("[4, 4]", "[1, 1, 1, 1, 1]"), ":2: a shape has 1 to 4 dimensions"),
    "absurd shape": (FAMILY.replace("[4, 4]", "[1000000000, 1000000000]"), "elements"),
    "recursion": (FAMILY + "vars: &v {n: [*v]}\n", ":4: an alias contains itself"),
    "huge sweep": (FAMILY + SWEEP, "1,000,000 combinations of variables; at most 100,000"),
    "not UTF-8": (b"op: X\n# caf\xe9\n", ":2: not UTF-8 text"),
    "binary": (bytes(range(256)), "not"),
    "code": (FAMILY.replace("silu(a)", "silu(a.__class__)"), "`.__class__` cannot be read"),
    "unknown variable": (FAMILY + "where: m > 1\n", "unknown name `m`"),
    "unknown limit": (FAMILY + "limits: {mma: 1}\n", ":4: unknown limit mma (did you mean maa?)"),
    "unknown place": (
        FAMILY + "expect: {placement: targe}\n",
        ":4: `placement` is target or cpu, not targe (did you mean target?)",
    ),
    "unknown expectation": (
        FAMILY + "eval: {expect: {placment: cpu}}\n",
        ":4: unknown key `placment` in `expect` (did you mean placement?)",
    ),
    "no expectation": (FAMILY + "expect: {}\n", ":4: `expect` needs `placement`"),
    # These only ggml knows.
    "unknown function": (FAMILY.replace("silu(", "siluu("), "no function `siluu` for graphs (did you mean silu?)"),
    "wrong arity": (FAMILY.replace("silu(a)", "mul_mat(a)"), "mul_mat takes 2 arguments (a, b), got 1"),
    "wrong kind of argument": (FAMILY.replace("silu(a)", "silu(3)"), "silu: `a` must be a tensor, got 3"),
    "unknown type": (FAMILY.replace("[4, 4]", "{ne: [4], type: f33}"), "ggml has no type `f33` (did you mean f32?)"),
    "impossible shapes": (
        "op: X\ninputs: {a: [4], b: [5]}\ngraph: out = mul_mat(a, b)\n",
        "GGML_ASSERT(ggml_can_mul_mat(a, b)) failed; a is f32 [4,1,1,1], b is f32 [5,1,1,1]",
    ),
    "view beyond the end": (FAMILY.replace("silu(a)", "view_1d(a, 100, 0)"), "view_1d(a, 100, 0): ggml refuses"),
    "no tensor": (FAMILY.replace("silu(a)", "a.ne[0]"), "`out` is 4, not a tensor"),
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([*TOOL, *arguments], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file(name: str, tmp_path: Path) -> None:
    content, says = FILES[name]
    file = tmp_path / "wrong.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run("grad", "-b", "cpu", "--case", str(file))
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("gradcheck: error: ")
    assert str(file) in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["grad", "-b", "cudaa", "-o", "SILU"], "no device matches cudaa; this ggml has CPU"),
        (["grad", "-o", "SILUU"], "no cases for the op SILUU (did you mean SILU"),
        (["grad", "-o", "SILU(type=f32)"], "no grad case SILU(type=f32) (did you mean SILU("),
        (["grad", "-o", "SILU", "-p", "zz"], "no case's variables match"),
        (["grad", "-o", "SILU", "--limit", "mma=1"], "no limit mma in mode grad"),
        (["grad", "--case", "/nowhere.yaml"], "/nowhere.yaml"),
        (["grad", "-o", "SILU", "--output", "json=/nowhere/x.json"], "cannot write /nowhere/x.json"),
        (["eval", "-o", "SILU", "--reference", "gpu7"], "no reference gpu7; there are auto, numpy, CPU"),
        (["gard"], "Did you mean 'grad'"),
        (["grad", "--sed", "1"], "--seed"),
        (["grad", "-j", "0"], "0 is not in the range"),
    ],
)
def test_a_wrong_argument(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_cases(tmp_path: Path) -> None:
    done = run("grad", "--case", str(tmp_path))
    assert done.returncode == 2
    assert "a folder without a .yaml file" in done.stderr
