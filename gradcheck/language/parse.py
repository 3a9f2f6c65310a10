"""Text to a checked syntax tree: what is not in the whitelist is refused here, before anything runs."""

import ast
import functools
from dataclasses import dataclass

from gradcheck.model.errors import GradcheckError

#: Longer or deeper text is a mistake, not a case; the bounds keep `ast` itself out of trouble.
MAX_CHARACTERS = 10_000
MAX_DEPTH = 50

#: What can be read of a tensor: shape, strides in bytes, ggml's type name.
TENSOR_ATTRIBUTES = ("ne", "nb", "type")

_EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant,
    ast.List, ast.Tuple, ast.Subscript, ast.Slice, ast.Attribute,
)  # fmt: skip
_OPERATORS: tuple[type[ast.AST], ...] = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd, ast.Not, ast.And,
    ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot,
)  # fmt: skip


class LanguageError(GradcheckError):
    """Text that is not in the language, or that cannot be evaluated."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A checked expression; `names` are the names that it reads.

    The same text gives the same object, so that identity will do as equality, and is quick.
    """

    text: str
    tree: ast.expr
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Graph:
    """Checked statements `name = expression` (or a bare call), in order."""

    text: str
    statements: tuple[tuple[str | None, Expression], ...]

    @property
    def calls(self) -> frozenset[str]:
        """The names of all functions that are called."""
        return frozenset(
            node.func.id
            for _, expression in self.statements
            for node in ast.walk(expression.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        )


@functools.cache
def parse_expression(text: str) -> Expression:
    """Parse one expression. Raises LanguageError with what is wrong and where in the text."""
    body = _parse(text, "eval")
    assert isinstance(body, ast.Expression)
    return _expression(body.body, text)


@functools.cache
def parse_graph(text: str) -> Graph:
    """Parse the statements of a graph; the last one must give `out`. Raises LanguageError."""
    module = _parse(text, "exec")
    assert isinstance(module, ast.Module)
    statements = tuple(_statement(node, text) for node in module.body)
    if "out" not in {name for name, _ in statements}:
        raise LanguageError("the graph never says what `out` is; end it with `out = ...`")
    return Graph(text, statements)


def _parse(text: str, mode: str) -> ast.AST:
    if len(text) > MAX_CHARACTERS:
        raise LanguageError(f"an expression of {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    try:
        return ast.parse(text.strip(), mode=mode)
    except SyntaxError as error:
        raise LanguageError(f"cannot read `{_excerpt(text, error.lineno or 1)}`: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise LanguageError(f"cannot read the expression: {error}") from None


def _statement(node: ast.stmt, text: str) -> tuple[str | None, Expression]:
    if isinstance(node, ast.Expr):
        return None, _expression(node.value, text)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, _expression(node.value, text)
    raise LanguageError(f"`{_excerpt(text, node.lineno)}` is neither `name = expression` nor a call")


def _expression(tree: ast.expr, text: str) -> Expression:
    names: set[str] = set()
    _check(tree, text, names, 0)
    return Expression(text, tree, frozenset(names))


def _check(node: ast.AST, text: str, names: set[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise LanguageError(f"the expression is nested more than {MAX_DEPTH} deep")
    if isinstance(node, (*_OPERATORS, ast.expr_context)):
        return
    if isinstance(node, ast.keyword):
        raise LanguageError("arguments go by position, as in C")
    if not isinstance(node, _EXPRESSIONS):
        what = ast.get_source_segment(text.strip(), node) or type(node).__name__
        raise LanguageError(f"`{what}` is not in the language of case files")
    if isinstance(node, ast.Attribute) and node.attr not in TENSOR_ATTRIBUTES:
        raise LanguageError(f"`.{node.attr}` cannot be read; a tensor has .{', .'.join(TENSOR_ATTRIBUTES)}")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str | None):
        raise LanguageError(f"{node.value!r} is not a number, a word or None")
    if isinstance(node, ast.Name):
        names.add(node.id)
    for child in _children(node):
        _check(child, text, names, depth + 1)


def _children(node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Call):
        return list(ast.iter_child_nodes(node))
    if not isinstance(node.func, ast.Name):
        raise LanguageError("only a function's plain name can be called")
    return [*node.args, *node.keywords]


def _excerpt(text: str, line: int) -> str:
    lines = text.strip().splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1].strip()
    return shown if len(shown) <= 60 else shown[:57] + "..."
