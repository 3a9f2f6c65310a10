"""The tool as a process: pipes that close early, a stream that is full."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = [sys.executable, "-m", "gradcheck"]

MANY = """\
op: SILU
vars:
  n: [%s]
inputs: {a: [n, 1, 1, 1]}
graph: out = silu(a)
"""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    file = tmp_path / "many.yaml"
    # More than a pipe holds, so that writing goes on after the reader left.
    file.write_text(MANY % ", ".join(str(n) for n in range(1, 9001)))
    return file


def test_a_reader_that_leaves_is_no_error(many: Path) -> None:
    with subprocess.Popen(
        [*TOOL, "list", "--case", str(many)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tool:
        assert tool.stdout
        assert tool.stderr
        assert tool.stdout.readline() == "SILU(n=1)\n"
        tool.stdout.close()
        assert tool.stderr.read() == ""
    assert tool.returncode == 0


def test_a_full_disk_is_told(many: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TOOL, "list", "--case", str(many)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "gradcheck: error: cannot write to standard output: No space left on device\n"


def test_a_case_file_that_is_no_case_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("op: [\n")
    done = subprocess.run([*TOOL, "list", "--case", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gradcheck: error: {file}:")
    assert "Traceback" not in done.stderr
