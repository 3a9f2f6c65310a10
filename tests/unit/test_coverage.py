"""Counting what covers an op, from fabricated cases and graphs."""

from dataclasses import replace

from gradcheck.coverage import cover, each_choice, worth_building
from gradcheck.model.case import Case, Input, Value
from gradcheck.model.coverage import OpCoverage
from gradcheck.model.place import Place
from gradcheck.model.result import Outcome, Result
from gradcheck.model.status import Status

PARAM = Input("a", "f32", (4, 1, 1, 1))
NO_RULE = "unsupported ggml op for backward pass: NORM"


def case(op: str, line: int = 1, **variables: Value) -> Case:
    name = ",".join(f"{key}={value}" for key, value in variables.items())
    return Case(op, name, tuple(variables.items()), (), (PARAM,), "out = a", Place("x.yaml", line))


def built(case: Case, *ops: str, reason: str = "") -> tuple[Case, Result]:
    status = Status.UNSUPPORTED if reason else Status.PASS
    outcome = Outcome(status, reason, tensors=tuple((op,) for op in ops), out=0)
    return case, Result(0, "backward_graph", case.op, case.id, "CPU", case.place, status, outcome, 0.0)


def test_every_value_of_every_variable_is_chosen() -> None:
    square = [case("A", x=x, y=y) for x in range(4) for y in range(4)]
    chosen = each_choice(square)
    assert {c.vars[0] for c in chosen} == {("x", x) for x in range(4)}
    assert {c.vars[1] for c in chosen} == {("y", y) for y in range(4)}
    assert len(chosen) == 7


def test_families_are_chosen_from_by_themselves() -> None:
    assert len(each_choice([case("A"), case("A", line=2), case("B"), case("A")])) == 3


def test_a_family_of_grad_is_not_built_for_eval_again() -> None:
    cases = {"grad": [case("A", x=1)], "eval": [case("A", x=1), case("A", x=2), case("B")]}
    assert [c.id for c in worth_building(cases)] == ["A(x=1)", "B()"]


def row(op: str, cases: dict[str, list[Case]], *graphs: tuple[Case, Result]) -> OpCoverage:
    return cover([op], {"grad": [], "eval": [], "support": [], **cases}, graphs)[0]


def test_an_op_with_all_there_can_be() -> None:
    a = case("SILU")
    found = row("SILU", {"grad": [a], "eval": [a, case("SILU", x=1)]}, built(a, "NONE", "SILU", "SILU_BACK"))
    assert found == OpCoverage("SILU", eval=2, grad=1, tried=1, built=1, families=1, missing="")


def test_an_op_is_found_in_the_graphs_of_others() -> None:
    graphs = (built(case("SILU"), "SILU", "SILU_BACK"), built(case("SWIGLU", 2), "GLU", "SILU_BACK"))
    found = row("SILU_BACK", {}, *graphs)
    assert (found.families, found.missing) == (2, "no case")


def test_what_is_missing() -> None:
    a, constant = case("NORM"), replace(case("NORM"), inputs=(replace(PARAM, param=False),))
    assert row("NORM", {"eval": [a]}, built(a, "NORM", reason=NO_RULE)).missing == "ggml has no backward rule"
    assert row("NORM", {"eval": [a]}, built(a, "NORM", reason="x refuses")).missing == "no backward: x refuses"
    assert row("NORM", {"eval": [a]}, built(a, "NORM")).missing == "no case for grad, although ggml has a backward rule"
    assert row("NORM", {"grad": [a]}, built(a, "NORM")).missing == "no case for eval"
    found = row("NORM", {"eval": [constant]}, built(constant, "NORM", reason="none"))
    assert found.missing == "no input of its cases is differentiated"


def test_cases_that_differentiate_nothing_are_none_for_grad() -> None:
    skipped, constant = replace(case("A"), skip="why"), replace(case("A", x=1), inputs=())
    assert row("A", {"grad": [skipped, constant, case("A", x=2)]}).grad == 1
