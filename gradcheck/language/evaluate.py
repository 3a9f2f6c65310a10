"""Evaluate a checked tree over a scope. There is no Python `eval`: each node kind has its rule here."""

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gradcheck.language.parse import Expression, Graph, LanguageError
from gradcheck.model.nearest import did_you_mean

#: Calls a function of ggml (given without its prefix) with evaluated arguments.
Call = Callable[[str, list[Any]], Any]
#: The value of a word that is not in the scope (an enum word such as OP_POOL_MAX); KeyError if unknown.
Words = Callable[[str], Any]

#: Larger powers and lists are mistakes that would only eat memory.
MAX_BITS = 64
MAX_ITEMS = 100_000


def _bounded(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        result = apply(left, right)
        if isinstance(result, int) and result.bit_length() > 2 * MAX_BITS:
            _too_big()
        return result

    return run


def _times(left: Any, right: Any) -> Any:
    if isinstance(left, tuple) and len(left) * right > MAX_ITEMS:
        _too_big()
    return left * right


def _power(left: Any, right: Any) -> Any:
    if not (abs(right) <= MAX_BITS and abs(left) <= 2**32):
        _too_big()
    return left**right


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _bounded(operator.add),
    ast.Sub: _bounded(operator.sub),
    ast.Mult: _bounded(_times),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _bounded(_power),
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _prod(*values: Any) -> Any:
    items = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    return math.prod(items)


#: Functions of the language itself; everything else that is called is ggml's.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "prod": _prod,
    "abs": abs,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "int": int,
    "float": float,
    "len": len,
    "range": lambda *a: tuple(range(*a)) if len(range(*a)) <= MAX_ITEMS else _too_big(),
}
_CONSTANTS: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
#: One name is ggml's and the language's: with a tensor as its argument it is ggml's.
_BOTH = frozenset({"abs", "sqrt"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What names and calls mean during one evaluation."""

    names: Mapping[str, Any]
    call: Call
    words: Words


#: A compiled tree: one closure a node, made once for a text and run for every case.
Code = Callable[[Scope], Any]


def evaluate(
    expression: Expression, scope: Mapping[str, Any], call: Call | None = None, words: Words | None = None
) -> Any:
    """The value of an expression over a scope; without `call`, of plain values alone. Raises LanguageError."""
    return _compiled(expression)(Scope(scope, call or _no_call, words or _no_word))


def run_graph(graph: Graph, scope: Mapping[str, Any], call: Call, words: Words) -> dict[str, Any]:
    """Run the statements in order; returns every name that they set. Raises LanguageError."""
    names = dict(scope)
    made: dict[str, Any] = {}
    inside = Scope(names, call, words)
    for name, expression in graph.statements:
        value = _compiled(expression)(inside)
        if name is not None:
            names[name] = made[name] = value
    return made


@functools.cache
def _compiled(expression: Expression) -> Code:
    run = _compile(expression.tree)

    def guarded(scope: Scope) -> Any:
        try:
            return run(scope)
        except (TypeError, ZeroDivisionError, IndexError, OverflowError, ValueError) as error:
            raise LanguageError(f"`{ast.unparse(expression.tree)}`: {error}") from None

    return guarded


def _compile(node: ast.expr) -> Code:
    return _RULES[type(node)](node)


def _constant(node: ast.Constant) -> Code:
    value = node.value
    return lambda _scope: value


def _name(node: ast.Name) -> Code:
    name = node.id

    def read(scope: Scope) -> Any:
        if name in scope.names:
            return scope.names[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        try:
            return scope.words(name)
        except KeyError:
            known = [*scope.names, *_CONSTANTS]
            raise LanguageError(f"unknown name `{name}`{did_you_mean(name, known)}") from None

    return read


def _list(node: ast.List | ast.Tuple) -> Code:
    items = [_compile(item) for item in node.elts]
    return lambda scope: tuple([item(scope) for item in items])


def _binop(node: ast.BinOp) -> Code:
    left, right, apply = _compile(node.left), _compile(node.right), _BINARY[type(node.op)]
    return lambda scope: apply(left(scope), right(scope))


def _unaryop(node: ast.UnaryOp) -> Code:
    operand, apply = _compile(node.operand), _UNARY[type(node.op)]
    return lambda scope: apply(operand(scope))


def _boolop(node: ast.BoolOp) -> Code:
    items = [_compile(item) for item in node.values]
    stops_at = isinstance(node.op, ast.Or)

    def run(scope: Scope) -> Any:
        value: Any = None
        for item in items:
            value = item(scope)
            if bool(value) is stops_at:
                break
        return value

    return run


def _compare(node: ast.Compare) -> Code:
    first = _compile(node.left)
    rest = [(_COMPARE[type(op)], _compile(item)) for op, item in zip(node.ops, node.comparators, strict=True)]

    def run(scope: Scope) -> bool:
        left = first(scope)
        for holds, item in rest:
            right = item(scope)
            if not holds(left, right):
                return False
            left = right
        return True

    return run


def _ifexp(node: ast.IfExp) -> Code:
    test, body, orelse = _compile(node.test), _compile(node.body), _compile(node.orelse)
    return lambda scope: body(scope) if test(scope) else orelse(scope)


def _subscript(node: ast.Subscript) -> Code:
    value, index = _compile(node.value), _compile(node.slice)
    return lambda scope: value(scope)[index(scope)]


def _slice(node: ast.Slice) -> Code:
    parts = [None if part is None else _compile(part) for part in (node.lower, node.upper, node.step)]
    return lambda scope: slice(*(None if part is None else part(scope) for part in parts))


def _attribute(node: ast.Attribute) -> Code:
    owner, name = _compile(node.value), node.attr

    def read(scope: Scope) -> Any:
        value = owner(scope)
        if isinstance(value, int | float | str | tuple | None):
            raise LanguageError(f"`{ast.unparse(node)}`: only a tensor has .{name}")
        return getattr(value, name)

    return read


def _call(node: ast.Call) -> Code:
    assert isinstance(node.func, ast.Name)
    name, arguments = node.func.id, [_compile(argument) for argument in node.args]
    own = FUNCTIONS.get(name)

    def run(scope: Scope) -> Any:
        values = [argument(scope) for argument in arguments]
        if own is not None and not (name in _BOTH and _is_tensor(values)):
            return own(*values)
        return scope.call(name, values)

    return run


_RULES: dict[type[ast.expr], Callable[[Any], Code]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _list,
    ast.Tuple: _list,
    ast.BinOp: _binop,
    ast.UnaryOp: _unaryop,
    ast.BoolOp: _boolop,
    ast.Compare: _compare,
    ast.IfExp: _ifexp,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Attribute: _attribute,
    ast.Call: _call,
}


def _is_tensor(arguments: list[Any]) -> bool:
    return bool(arguments) and hasattr(arguments[0], "ne")


def _too_big() -> Any:
    raise LanguageError("the value is too large to be meant")


def _no_call(name: str, _arguments: list[Any]) -> Any:
    raise LanguageError(f"unknown function `{name}`{did_you_mean(name, FUNCTIONS)}")


def _no_word(name: str) -> Any:
    raise KeyError(name)
