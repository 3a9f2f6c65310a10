"""The closed expression language."""

from typing import Any

import pytest

from gradcheck.language import evaluate, parse_expression, parse_graph, run_graph
from gradcheck.language.parse import LanguageError


def value(text: str, **scope: Any) -> Any:
    return evaluate(parse_expression(text), scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("7 // 2 - -1", 4),
        ("[1, 2][1]", 2),
        ("ne[0], ne[1] * 2", (4, 10)),
        ("ne[1:]", (5, 6)),
        ("ne + [1]", (4, 5, 6, 1)),
        ("[1] * 3", (1, 1, 1)),
        ("prod(ne)", 120),
        ("prod(2, 3)", 6),
        ("min(ne) if mask else max(ne)", 6),
        ("mask or ne[0] == 4", True),
        ("not mask and 3 in [1, 3]", True),
        ("1 < 2 < 2", False),
        ("-inf", float("-inf")),
        ("None", None),
        ("'UNARY_OP_' + op", "UNARY_OP_SILU"),
        ("2 ** 10", 1024),
        ("sqrt(9.0)", 3.0),
    ],
)
def test_values(text: str, expected: Any) -> None:
    assert value(text, ne=(4, 5, 6), mask=0, op="SILU") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ne[", "cannot read"),
        ("__import__('os').system('true')", "only a function's plain name"),
        ("(lambda: 1)()", "only a function's plain name"),
        ("ne.__class__", "cannot be read"),
        ("[x for x in ne]", "not in the language"),
        ("f'{ne}'", "not in the language"),
        ("open('x')", "unknown function `open`"),
        ("prd(ne)", "did you mean prod?"),
        ("nee[0]", "did you mean ne?"),
        ("ne[9]", "out of range"),
        ("1 / 0", "division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("[1] * 10 ** 9", "too large"),
        ("range(10 ** 9)", "too large"),
        ("min(1, key=2)", "by position"),
        ("b'x'", "not a number"),
        ("ne.ne", "only a tensor"),
        ("(" * 60 + "1" + ")" * 60 + "+ (" * 60 + "1" + ")" * 60, ""),
        ("-" * 200 + "1", "nested"),
        ("1" * 20_000, "characters"),
    ],
)
def test_refusals_are_errors_with_words(text: str, says: str) -> None:
    with pytest.raises(LanguageError, match=says.replace("[", r"\[") if says else None):
        value(text, ne=(4, 5, 6))


def test_only_the_chosen_branch_is_evaluated() -> None:
    assert value("1 if flag else 1 / 0", flag=True) == 1


class FakeTensor:
    ne = (4, 1, 1, 1)
    nb = (4, 16, 16, 16)
    type = "f32"


def test_a_graph_calls_ggml_and_keeps_names() -> None:
    calls = []

    def call(name: str, arguments: list[Any]) -> Any:
        calls.append((name, arguments))
        return FakeTensor()

    a = FakeTensor()
    graph = parse_graph("x = view_1d(a, a.ne[0] - 1, a.nb[0])\nset_prec(x, PREC_F32)\nout = abs(x)")
    made = run_graph(graph, {"a": a}, call, {"PREC_F32": 10}.__getitem__)
    assert calls[0] == ("view_1d", [a, 3, 4])
    assert calls[1] == ("set_prec", [made["x"], 10])
    assert calls[2][0] == "abs"
    assert graph.calls == {"view_1d", "set_prec", "abs"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = silu(a)", "`out`"),
        ("import os\nout = a", "neither"),
        ("out.x = a", "neither"),
        ("for i in a: pass\nout = a", "neither"),
        ("out = a; del a", "neither"),
        ("", "`out`"),
    ],
)
def test_graph_refusals(text: str, says: str) -> None:
    with pytest.raises(LanguageError, match=says):
        parse_graph(text)
