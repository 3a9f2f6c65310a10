"""Evaluate a checked tree over a scope. There is no Python `eval`: each node kind has its rule here."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from gradcheck.language.parse import Expression, Graph, LanguageError

#: Calls a function of ggml (given without its prefix) with evaluated arguments.
Call = Callable[[str, list[Any]], Any]
#: The value of a word that is not in the scope (an enum word such as OP_POOL_MAX); KeyError if unknown.
Words = Callable[[str], Any]

#: Larger powers and lists are mistakes that would only eat memory.
MAX_BITS = 64
MAX_ITEMS = 100_000

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
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


def evaluate(expression: Expression, scope: Mapping[str, Any]) -> Any:
    """The value of an expression over a scope of plain values. Raises LanguageError."""
    return _Evaluator(scope, _no_call, _no_word).value(expression.tree)


def run_graph(graph: Graph, scope: Mapping[str, Any], call: Call, words: Words) -> dict[str, Any]:
    """Run the statements in order; returns every name that they set. Raises LanguageError."""
    names = dict(scope)
    made: dict[str, Any] = {}
    evaluator = _Evaluator(names, call, words)
    for name, expression in graph.statements:
        value = evaluator.value(expression.tree)
        if name is not None:
            names[name] = made[name] = value
    return made


class _Evaluator:
    def __init__(self, scope: Mapping[str, Any], call: Call, words: Words) -> None:
        self._scope = scope
        self._call_ggml = call
        self._words = words

    def value(self, node: ast.expr) -> Any:
        rule: Callable[[Any], Any] = getattr(self, f"_{type(node).__name__.lower()}")
        try:
            return rule(node)
        except (TypeError, ZeroDivisionError, IndexError, OverflowError, ValueError) as error:
            raise LanguageError(f"`{ast.unparse(node)}`: {error}") from None

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._scope:
            return self._scope[node.id]
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        try:
            return self._words(node.id)
        except KeyError:
            known = [*self._scope, *_CONSTANTS]
            raise LanguageError(f"unknown name `{node.id}`{nearest(node.id, known)}") from None

    def _list(self, node: ast.List | ast.Tuple) -> Any:
        return tuple(self.value(item) for item in node.elts)

    _tuple = _list

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Pow) and not (abs(right) <= MAX_BITS and abs(left) <= 2**32):
            _too_big()
        if isinstance(node.op, ast.Mult) and isinstance(left, tuple) and len(left) * right > MAX_ITEMS:
            _too_big()
        result = _BINARY[type(node.op)](left, right)
        if isinstance(result, int) and result.bit_length() > 2 * MAX_BITS:
            _too_big()
        return result

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) else +value

    def _boolop(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for item in node.values:
            value = self.value(item)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for op, item in zip(node.ops, node.comparators, strict=True):
            right = self.value(item)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def _slice(self, node: ast.Slice) -> slice:
        parts = [None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, int | float | str | tuple | None):
            raise LanguageError(f"`{ast.unparse(node)}`: only a tensor has .{node.attr}")
        return getattr(owner, node.attr)

    def _call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        name, arguments = node.func.id, [self.value(argument) for argument in node.args]
        if name in FUNCTIONS and not (name in _BOTH and _is_tensor(arguments)):
            return FUNCTIONS[name](*arguments)
        return self._call_ggml(name, arguments)


def nearest(word: str, known: Any) -> str:
    """A hint `; did you mean ...?` with the nearest of the known words, or nothing."""
    found = get_close_matches(word, [str(k) for k in known], n=1, cutoff=0.6)
    return f"; did you mean `{found[0]}`?" if found else ""


def _is_tensor(arguments: list[Any]) -> bool:
    return bool(arguments) and hasattr(arguments[0], "ne")


def _too_big() -> Any:
    raise LanguageError("the value is too large to be meant")


def _no_call(name: str, _arguments: list[Any]) -> Any:
    raise LanguageError(f"unknown function `{name}`{nearest(name, FUNCTIONS)}")


def _no_word(name: str) -> Any:
    raise KeyError(name)
