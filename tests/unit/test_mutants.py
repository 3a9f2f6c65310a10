"""The list of mutants, putting them into a source, and what a run with one proves."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutants.cpp_runs import CppLook
from benchmarks.mutants.gradcheck_runs import Look, new_bad
from benchmarks.mutants.mutant import Form, InvalidMutants, Mutant, chosen, load
from benchmarks.mutants.patch import patched
from benchmarks.mutants.report import summary_lines, update
from benchmarks.mutants.result import Fate, Result, read, write

KERNEL = """#include "ops.h"

static void first(int n) {
    run(n, a + b);
}

static void second(int n) {
    for (int i = 0; i < n; ++i) { run(i,   a
        + b); }
    stop();
}
"""
FILE = "src/ops.cpp"
FILES = {"src/ggml.c": "int core;\n", FILE: KERNEL}


def mutant(
    name: str = "m",
    old: str = "a + b",
    new: str = "a - b",
    form: Form = Form.EXPRESSION,
    anchor: str = "static void second(",
    equivalent: str = "",
) -> Mutant:
    return Mutant(name, FILE, (anchor,), old, new, form, kind="sign", ops=("ADD",), why="", equivalent=equivalent)


def test_the_list_is_large_and_its_names_are_unique() -> None:
    mutants = load()
    assert len(mutants) >= 50
    assert len({m.name for m in mutants}) == len(mutants)
    assert len({op for m in mutants for op in m.ops}) >= 25


def test_an_expression_becomes_a_choice_where_the_anchor_says() -> None:
    text = patched(FILES, [mutant()])[FILE]
    assert text.startswith('#include "gradcheck-mutants.h"\n')
    assert "run(n, a + b);" in text
    assert "(GRADCHECK_MUTANT(1) ? (a - b) : (a\n        + b))" in text


def test_a_mutant_stays_in_its_case() -> None:
    text = "static void f(int n) {\n switch (n) {\n case ONE: one(); break;\n case TWO: two(); break;\n }\n}\n"
    strayed = Mutant("m", FILE, ("static void f(", "case ONE:"), "two()", "0", Form.EXPRESSION, "sign", ("ADD",), "")
    with pytest.raises(InvalidMutants, match="is not in"):
        patched({**FILES, FILE: text}, [strayed])
    assert "? (0) : (one())" in patched({**FILES, FILE: text}, [replace(strayed, old="one()")])[FILE]


def test_a_statement_becomes_an_if() -> None:
    text = patched(FILES, [mutant(old="stop();", new=";", form=Form.STATEMENT)])[FILE]
    assert "if (GRADCHECK_MUTANT(1)) { ; } else { stop(); }" in text


def test_mutants_of_one_place_are_alternatives() -> None:
    text = patched(FILES, [mutant("one"), mutant("other", new="b")])[FILE]
    assert "(GRADCHECK_MUTANT(1) ? (a - b) : (GRADCHECK_MUTANT(2) ? (b) : (a" in text


def test_the_library_gets_the_names_in_their_order() -> None:
    done = patched(FILES, [mutant("one"), mutant("other", anchor="static void first(")])
    assert done["src/gradcheck-mutants-table.h"] == '    "one",\n    "other",\n'
    assert done["src/ggml.c"].endswith('#include "gradcheck-mutants.c.inc"\n')
    assert "GRADCHECK_MUTANT_REACHED" in done["src/gradcheck-mutants.c.inc"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([mutant(anchor="static void")], "`static void` is 2 times"),
        ([mutant(anchor="static void third(")], "is 0 times"),
        ([mutant(old="a * b")], "`a \\* b` is not in src/ops.cpp"),
        ([mutant(anchor="static void first(", old="stop();")], "is not in"),
        ([mutant(), mutant("other", old="a")], "overlap"),
    ],
)
def test_a_mutant_that_does_not_fit_is_refused(wrong: list[Mutant], message: str) -> None:
    with pytest.raises(InvalidMutants, match=message):
        patched(FILES, wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file: a.c", "`file` and `mutants`"),
        ("file: a.c\nmutants: [{name: x}]", "x lacks form"),
        ("file: [", "list.yaml"),
        (
            "file: a.c\nmutants: [{name: x, in: [f], old: a, new: b, form: x, kind: k, ops: [ADD], why: w}]",
            "expression or statement, not x",
        ),
    ],
)
def test_a_wrong_list_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(text)
    with pytest.raises(InvalidMutants, match=message):
        load(tmp_path)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidMutants, match="no mutant nonsense"):
        chosen(load(), ["nonsense"])


def test_only_what_is_bad_because_of_the_mutant_counts() -> None:
    before = {"A": ("PASS", ""), "B": ("CRASH", ""), "C": ("XFAIL", ""), "D": ("PASS", "")}
    after = {"A": ("VACUOUS", ""), "B": ("CRASH", ""), "C": ("XFAIL", ""), "D": ("FAIL", "maa")}
    assert new_bad(before, after) == {"D": "FAIL", "A": "VACUOUS"}


def test_what_is_never_reached_is_not_missed() -> None:
    assert Result(mutant(), (Look("", reached=False),), None).ours is Fate.NOT_REACHED
    assert Result(mutant(), (Look("", reached=True),), None).ours is Fate.MISSED
    assert Result(mutant(), (Look("", {"FAIL": 1}, reached=True),), None).ours is Fate.CAUGHT
    assert Result(mutant(), (Look("", problem="exit code 2"),), None).ours is Fate.NOT_RUN


def test_an_equivalent_mutant_must_not_be_seen() -> None:
    seen, unseen = (Look("", {"FAIL": 1}, reached=True),), (Look("", reached=True),)
    assert Result(mutant(), unseen, None).wrong
    assert not Result(mutant(), seen, None).wrong
    assert not Result(mutant(equivalent="no difference"), unseen, None).wrong
    assert Result(mutant(equivalent="no difference"), seen, None).wrong


def test_results_survive_the_file(tmp_path: Path) -> None:
    looks = (Look("", reached=True), Look("--threads 2", {"FAIL": 2}, 3, "ADD()", "maa", reached=True))
    cpp = CppLook(2, ("ADD(x)",), compared=4, reached=True)
    write(tmp_path / "m.json", [Result(mutant("one"), looks, cpp), Result(mutant("other"), None, None)])
    assert read(tmp_path / "m.json") == {"one": (looks, cpp), "other": (None, None)}


def test_the_counts_leave_equivalent_mutants_out() -> None:
    seen = (Look("", {"FAIL": 1}, reached=True),)
    lines = summary_lines([Result(mutant(), seen, None), Result(mutant(equivalent="no"), (Look(""),), None)])
    assert lines[0].startswith("2 mutants, 1 of them equivalent")
    assert lines[1].startswith("gradcheck sees 1: 1 as it comes")


def test_text_around_what_is_generated_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mutants\n\nBy hand.\n")
    update(page, "one")
    update(page, "two")
    text = page.read_text()
    assert text.startswith("# Mutants\n\nBy hand.\n")
    assert "two" in text
    assert "one" not in text
