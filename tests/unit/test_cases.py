"""YAML to cases, and what is said of files that are wrong."""

from pathlib import Path

import pytest

from gradcheck.cases import Selection, load_families, select
from gradcheck.cases.expand import expand
from gradcheck.model.case import Case
from gradcheck.model.errors import CaseFileError, GradcheckError, UsageError
from gradcheck.model.status import Status

FULL = """
op: SOFT_MAX
vars:
  type: f32
  ne: [[16, 16, 1, 1], [32, 13, 7, 3]]
  mask: [0, 1]
  scale: [1.0, 0.1]
  max_bias: [0.0, 8.0]
where: mask or max_bias == 0
let:
  rows: prod(ne[1:])
inputs:
  a: {type: type, ne: ne}
  mask:
    ne: ne[0], ne[1]
    init: {kind: block_mask, block: 4}
    if: mask
    param: the mask has no gradient
graph: out = soft_max_ext(a, mask if mask else None, scale, max_bias)
limits: {maa: 1e-2}
grad: {limits: {element: 0.5}, inputs: {a: {init: normal}}, where: "rows < 100"}
perf: {skip: too small to time}
known:
  - {mode: grad, where: max_bias > 0, status: FAIL, ggml: 0.15.3, reason: because}
"""


def cases_of(text: str, tmp_path: Path, mode: str = "grad") -> list[Case]:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    return expand(load_families((str(file),)), mode)


def test_a_full_family(tmp_path: Path) -> None:
    grad, evaluation = cases_of(FULL, tmp_path), cases_of(FULL, tmp_path, "eval")
    assert len(grad) == 6
    assert len(evaluation) == 12
    assert grad[0].id == "SOFT_MAX(type=f32,ne=[16,16,1,1],mask=0,scale=1.000000,max_bias=0.000000)"
    masked = grad[-1]
    assert [(i.name, i.ne, i.param) for i in masked.inputs] == [
        ("a", (16, 16, 1, 1), True),
        ("mask", (16, 16, 1, 1), False),
    ]
    assert masked.inputs[0].init.kind == "normal"
    assert evaluation[-1].inputs[0].init.kind == "uniform"
    assert dict(masked.inputs[1].init.args) == {"block": 4, "share": 0.3}
    assert masked.inputs[1].reason == "the mask has no gradient"
    assert dict(masked.limits) == {"maa": 0.01, "element": 0.5}
    assert dict(masked.scope)["rows"] == 16
    assert [known.status for known in masked.known] == [Status.FAIL]
    assert not grad[0].known
    assert {case.skip for case in cases_of(FULL, tmp_path, "perf")} == {"too small to time"}
    assert masked.place.line == 2


def test_the_shortest_family(tmp_path: Path) -> None:
    (case,) = cases_of("op: MY_OP\ninputs: {a: [10, 5, 4, 3]}\ngraph: out = my_op(a)\n", tmp_path)
    assert case.id == "MY_OP()"
    assert case.params[0].ne == (10, 5, 4, 3)


def test_several_families_and_ops_in_a_file(tmp_path: Path) -> None:
    text = """
- op: [ABS, NEG]
  vars: {ne: [[4], [5, 2]]}
  inputs: {a: {ne: ne}}
  graph: out = unary(a, "UNARY_OP_" + op)
- op: SQR
  inputs: {a: [3]}
  graph: out = sqr(a)
---
op: LOG
inputs: {a: {ne: 7, init: positive}}
graph: out = log(a)
"""
    assert [case.id for case in cases_of(text, tmp_path)] == [
        "ABS(ne=[4])", "ABS(ne=[5,2])", "NEG(ne=[4])", "NEG(ne=[5,2])", "SQR()", "LOG()",
    ]  # fmt: skip


def test_sweeps_tied_variables_null_and_a_template(tmp_path: Path) -> None:
    text = """
op: X
vars: {type: f32, "n, m": [[1, 2]], extra: null, flag: true}
sweeps:
  - {"n, m": [[3, 4], [5, 6]]}
  - {extra: [7], flag: [false]}
id: "{type},n={n},m={m},{flag}"
inputs: {a: {ne: "n, m"}}
graph: out = x(a)
"""
    assert [case.name for case in cases_of(text, tmp_path)] == ["f32,n=3,m=4,1", "f32,n=5,m=6,1", "f32,n=1,m=2,0"]
    without = text.replace('id: "{type},n={n},m={m},{flag}"\n', "")
    names = [case.name for case in cases_of(without, tmp_path)]
    assert names == ["type=f32,n=3,m=4,flag=1", "type=f32,n=5,m=6,flag=1", "type=f32,n=1,m=2,extra=7,flag=0"]


def test_yaml_scalars_follow_the_newer_standard(tmp_path: Path) -> None:
    text = "op: X\nvars: {eps: [1e-6, 0x10, .5], no: [on, 0o7, 010]}\ninputs: {a: [1]}\ngraph: out = x(a)\n"
    case = cases_of(text, tmp_path)[0]
    assert dict(case.vars) == {"eps": 1e-6, "no": "on"}


GOOD = "op: X\ninputs: {a: [4]}\ngraph: out = x(a)\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("op: [\n", 2, "not YAML"),
        ("op: X\n\tinputs: 1\n", 2, "not YAML"),
        ("just text", 1, "must be a mapping"),
        ("- 1\n- 2\n", 1, "must be a mapping"),
        ("op: X\ninputs: {a: [4]}\n", 1, "needs `graph`"),
        (GOOD + "grpah: x\n", 4, "did you mean graph"),
        (GOOD + "op: Y\n", 4, "stands here twice"),
        (GOOD.replace("X", "7"), 1, "must be text"),
        (GOOD.replace("[4]", "[4, -1]"), 2, "not negative"),
        (GOOD.replace("[4]", "[4.5]"), 2, "whole"),
        (GOOD.replace("[4]", "[1, 2, 3, 4, 5]"), 2, "1 to 4 dimensions"),
        (GOOD.replace("[4]", "[1048576, 1048576, 2]"), 2, "elements"),
        (GOOD.replace("[4]", "{ne: [4], typ: f32}"), 2, "did you mean type"),
        (GOOD.replace("[4]", "{ne: [4], type: 3}"), 2, "a type is a word"),
        (GOOD.replace("[4]", "{ne: [4], param: false}"), 2, "says why"),
        (GOOD.replace("[4]", "{ne: [4], init: unifrom}"), 2, "did you mean uniform"),
        (GOOD.replace("[4]", "{ne: [4], init: {kind: uniform, lo: 1}}"), 2, "no argument lo"),
        (GOOD.replace("[4]", "{ne: [4], init: integers}"), 2, "needs the argument high"),
        (GOOD.replace("[4]", "{ne: n}"), 2, "unknown name `n`"),
        (GOOD.replace("out = x(a)", "y = x(a)"), 3, "`out`"),
        (GOOD.replace("out = x(a)", "out = x(a"), 3, "cannot read"),
        (GOOD.replace("out = x(a)", "out = x(a).__class__"), 3, "cannot be read"),
        (GOOD + "where: [1]\n", 4, "expression"),
        (GOOD + "where: m > 1\n", 1, "unknown name `m`"),
        (GOOD + "vars: [1]\n", 4, "must be a mapping"),
        (GOOD + "vars: {n: []}\n", 4, "no values"),
        (GOOD + "vars: {n: {a: 1}}\n", 4, "not a mapping"),
        (GOOD + "vars: {'n, m': [1]}\n", 4, "list of 2 values"),
        (GOOD + "vars: {n: 1}\nsweeps: [{k: 1}]\n", 5, "does not have"),
        (GOOD + "limits: {maa: x}\n", 4, "unknown name `x`"),
        (GOOD + "limits: {maa: -1}\n", 4, "not negative"),
        (GOOD + "limits: {mma: 1}\n", 4, "did you mean maa"),
        (GOOD + "gradient: none\n", 4, "zero or nonzero"),
        (GOOD + "step: 0\n", 4, "positive"),
        (GOOD + "modes: [gradd]\n", 4, "did you mean grad"),
        (GOOD + "known: [{mode: grad, reason: r}]\n", 4, "needs `ggml`"),
        (GOOD + "known: [{mode: grad, reason: r, ggml: 1, status: FIAL}]\n", 4, "did you mean FAIL"),
        (GOOD + "grad: {inputs: {b: {init: normal}}}\n", 4, "no input b"),
        (GOOD + "id: '{n}'\n", 1, "unknown variable"),
        (GOOD + "x: &x [*x]\n", 4, "contains itself"),
        (GOOD + "1: 2\n", 4, "a name is expected"),
        (GOOD + "doc: !!python/object/apply:os.system ['true']\nstep: x\n", 5, "unknown name"),
        ("[" * 5000, 1, ""),
        (GOOD + "vars: {" + ", ".join(f"v{i}: [0,1,2,3,4,5,6,7,8,9]" for i in range(9)) + "}\n", 1, "combinations"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(text: str, line: int, says: str, tmp_path: Path) -> None:
    with pytest.raises(CaseFileError) as caught:
        cases_of(text, tmp_path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == line, str(caught.value)


def test_aliases_that_multiply_are_stopped(tmp_path: Path) -> None:
    lines = ["op: X", "inputs: {a: [4]}", "graph: out = x(a)", "a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(CaseFileError, match="aliases"):
        cases_of("\n".join(lines), tmp_path)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_families((str(tmp_path / "none.yaml"),))
    with pytest.raises(UsageError, match=r"without a \.yaml file"):
        load_families((str(tmp_path),))
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("op: X\n# caf\xe9\n".encode("latin-1"))
    with pytest.raises(CaseFileError, match=r"latin\.yaml:2: not UTF-8"):
        load_families((str(latin),))


def test_two_families_may_not_share_an_id(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="stands here and at"):
        cases_of(GOOD + "---\n" + GOOD, tmp_path)


def test_selection(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "- {op: MUL, vars: {ne: [[1, 2], [3, 4]]}, inputs: {a: {ne: ne}}, graph: 'out = mul(a, a)'}\n"
        "- {op: MUL_MAT, inputs: {a: [4]}, graph: 'out = mul_mat(a, a)'}\n"
        "- {op: ADD, modes: [eval], inputs: {a: [4]}, graph: 'out = add(a, a)'}\n"
    )

    def ids(*ops: str, pattern: str | None = None) -> list[str]:
        return [case.id for case in select(Selection(ops, pattern, (str(file),)), "grad")]

    assert ids("mul") == ["MUL(ne=[1,2])", "MUL(ne=[3,4])"]
    assert ids("MUL*") == ["MUL(ne=[1,2])", "MUL(ne=[3,4])", "MUL_MAT()"]
    assert ids("MUL(ne=[3,4])", "MUL_MAT") == ["MUL(ne=[3,4])", "MUL_MAT()"]
    assert ids(pattern=r"\[3") == ["MUL(ne=[3,4])"]
    with pytest.raises(UsageError, match="did you mean MUL"):
        ids("MULL")
    with pytest.raises(UsageError, match=r"did you mean MUL\(ne=\[3,4\]\)"):
        ids("MUL(ne=[3,5])")
    with pytest.raises(UsageError, match="no cases for grad"):
        ids("ADD")
    with pytest.raises(UsageError, match="not a regular expression"):
        ids(pattern="(")
    with pytest.raises(UsageError, match="no case's variables match"):
        ids(pattern="zzz")


def test_the_shipped_files_are_sound() -> None:
    for mode in ("grad", "eval", "perf", "support"):
        try:
            cases = select(Selection(), mode)
        except GradcheckError as error:  # pragma: no cover - the message is the test's
            pytest.fail(str(error))
        assert cases
