"""docs/findings.md against the case files: every command in it shows a failure that is known."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcheck.cases import Resizer, Selection, select, variants_by_id, with_known
from gradcheck.model.case import Case
from gradcheck.variants import vary

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"gradcheck (grad|eval) -b cpu -o '([^']+)'")
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| [^|]+ \| `([^`]+)` \|$", re.MULTILINE)
SECTION = re.compile(r"^## (\d+)\. .*?(?=^## )", re.MULTILINE | re.DOTALL)

#: A wrong kernel, a wrong rule and an abort while building: all quick.
SHOWN = (
    "SILU(form=strided_gradient,back=transposed)",
    "ADD1(form=both,ne=[9,1,1,1])",
    "CONT(form=then_transpose)",
)


@pytest.fixture(scope="module")
def cases() -> dict[tuple[str, str], Case]:
    return {(mode, case.id): case for mode in ("grad", "eval") for case in select(Selection(), mode)}


@pytest.mark.parametrize(("mode", "case_id"), sorted(set(COMMAND.findall(TEXT))))
def test_command_names_a_known_failure(mode: str, case_id: str, cases: dict[tuple[str, str], Case]) -> None:
    selection = Selection((case_id,))
    plain = [cases[mode, base] for base in variants_by_id(selection) if (mode, base) in cases]
    assert plain, "no such case"
    (case,) = with_known(vary(plain, None, variants_by_id(selection), Resizer(selection, mode), default=False))
    assert case.id == case_id
    assert any(k.mode == mode and k.concerns(case.variant) for k in case.known), "no known entry"


def test_every_command_can_be_read() -> None:
    assert TEXT.count("-b cpu") == len(COMMAND.findall(TEXT))


def test_table_and_sections_agree() -> None:
    rows = {int(number): command for number, command in ROW.findall(TEXT)}
    sections = {int(match[1]): match[0] for match in SECTION.finditer(TEXT)}
    assert list(rows) == list(range(1, len(rows) + 1))
    assert list(sections) == list(rows)
    for number, command in rows.items():
        assert f"    {command}\n" in sections[number], f"the command of finding {number} is not in its section"


def test_every_known_failure_of_grad_is_in_a_section(cases: dict[tuple[str, str], Case]) -> None:
    """By its op: a known failure of an op that no section shows is not written up."""
    shown = {case_id.split("(")[0] for _, case_id in COMMAND.findall(TEXT)}
    known = {case.op for (mode, _), case in cases.items() if any(k.mode == mode and not k.variant for k in case.known)}
    assert known <= shown


def test_the_command_line_ends_as_xfail() -> None:
    command = [sys.executable, "-m", "gradcheck", "grad", "-b", "cpu", "-v", "-o", ",".join(SHOWN)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for case_id in SHOWN:
        assert f"XFAIL {case_id}" in ended.stdout
    assert "3 xfail" in ended.stdout
