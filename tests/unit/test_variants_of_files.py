"""Variants and case files: rows of another length, ids with a variant, known failures of variants."""

import re
from pathlib import Path

import pytest

from gradcheck.cases import Resizer, Selection, select, variants_by_id, with_known
from gradcheck.model.case import Case
from gradcheck.model.errors import CaseFileError, UsageError
from gradcheck.variants import VARIANTS
from gradcheck.variants.choose import variants_of

FAMILIES = """
- op: ROWS
  vars: {type: f32, ne: [[10, 5, 4, 3]], scale: [2]}
  let: {half: "ne[0] // 2"}
  where: ne[0] != 65
  inputs: {a: {type: type, ne: ne}, b: {ne: "[ne[0], 1]"}, c: {ne: "[3, ne[1]]"}}
  graph: out = add(scale(a, half), b)
- op: PRODUCT
  vars: {m: 5, n: 4, k: 6}
  inputs: {a: {ne: "[k, m]"}, b: {ne: "[k, n]"}}
  graph: out = mul_mat(a, b)
- op: SQUARE
  vars: {n: 6}
  inputs: {a: {ne: "[n, n]"}}
  graph: out = silu(a)
- {op: LITERAL, inputs: {a: [8, 3]}, graph: "out = silu(a)"}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "x.yaml"
    path.write_text(FAMILIES)
    return str(path)


def tails(file: str, op: str) -> list[Case]:
    selection = Selection((op,), files=(file,))
    (case,) = select(selection, "grad")
    return list(variants_of(case, ["tails"], Resizer(selection, "grad")))


def test_what_the_file_derives_from_the_length_follows_it(file: str) -> None:
    found = tails(file, "ROWS")
    # 65 is dropped by `where`.
    assert [case.variant for case in found] == [f"tails:{size}" for size in (1, 7, 31, 33, 129)]
    seven = found[1]
    assert [i.ne for i in seven.inputs] == [(7, 5, 4, 3), (7, 1, 1, 1), (3, 5, 1, 1)]
    assert dict(seven.scope)["half"] == 3
    assert seven.id == "ROWS(type=f32,ne=[10,5,4,3],scale=2)+tails:7"


def test_a_whole_number_can_be_the_length(file: str) -> None:
    assert [i.ne[:2] for i in tails(file, "PRODUCT")[1].inputs] == [(7, 5), (7, 4)]


@pytest.mark.parametrize("op", ["SQUARE", "LITERAL"])
def test_no_variable_makes_rows_longer_and_nothing_else(file: str, op: str) -> None:
    assert tails(file, op) == []


def test_an_id_with_a_variant_selects_its_case(file: str) -> None:
    plain = "PRODUCT(m=5,n=4,k=6)"
    selection = Selection((f"{plain}+tails:7", f"{plain}+sliced", "LITERAL"), files=(file,))
    assert [case.id for case in select(selection, "grad")] == [plain, "LITERAL()"]
    assert variants_by_id(selection) == {plain: ("tails:7", "sliced")}
    with pytest.raises(UsageError, match=r"no grad case PRODUCT\(m=5,n=4,k=7\) \(did you mean PRODUCT"):
        select(Selection(("PRODUCT(m=5,n=4,k=7)+sliced",), files=(file,)), "grad")


def test_known_failures_of_variants_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "{op: SILU, inputs: {a: [4]}, graph: out = silu(a),"
        " known: [{mode: grad, reason: r, ggml: 0.15.3, variant: 'tails:*'}]}"
    )
    (case,) = select(Selection(files=(str(path),)), "grad")
    assert case.known[0].variant == "tails:*"
    assert [case.known[0].concerns(variant) for variant in ("", "tails:7", "sliced")] == [False, True, False]
    path.write_text(path.read_text().replace("tails:*", "tales:*"))
    with pytest.raises(CaseFileError, match="did you mean tails"):
        select(Selection(files=(str(path),)), "grad")


def test_every_shipped_entry_names_variants_that_there_are() -> None:
    entries = {known.variant for case in select(Selection(), "grad") for known in case.known if known.variant}
    assert {pattern.split(":")[0] for pattern in entries if "*" not in pattern.split(":")[0]} <= set(VARIANTS)


def test_what_is_known_of_variants_whatever_their_family() -> None:
    plain = select(Selection(("MUL",)), "grad")
    varied = [case for one in plain[:3] for case in variants_of(one, ["strided_cotangent", "spike"], lambda *_: None)]
    told = with_known([*plain, *varied])
    assert told[: len(plain)] == plain
    of = {case.variant: case.known for case in told[len(plain) :]}
    assert any("binary-ops.cpp:59" in entry.says for entry in of["strided_cotangent:transposed"])
    assert not any(entry.says for entry in of["spike"])
    # Words are what such an entry knows a failure by: it says nothing of one that passes, or fails in another way.
    assert all(entry.says for case in told for entry in case.known if entry.variant)
    silu = with_known(variants_of(select(Selection(("SILU",)), "grad")[0], ["sliced"], lambda *_: None))
    assert any("SILU_BACK" in entry.reason for entry in silu[0].known)
    assert not any("SILU_BACK" in entry.reason for case in told for entry in case.known)


def test_the_document_has_every_variant() -> None:
    text = (Path(__file__).parents[2] / "docs" / "variants.md").read_text(encoding="utf-8")
    told = {
        name.split(":")[0] for row in re.findall(r"^\| (`.+?) \| ", text, re.M) for name in re.findall("`(.+?)`", row)
    }
    assert set(VARIANTS) <= told
