"""The form of a node: a mapping with known keys, a list, a word, an expression; and what is said where it is not."""

from collections.abc import Iterable

from gradcheck.cases.source import Node
from gradcheck.language import Expression, parse_expression
from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Value
from gradcheck.model.nearest import did_you_mean


def expression_of(node: Node | None) -> Expression | None:
    """The expression that a node holds, None for an absent node. Raises CaseFileError."""
    if node is None:
        return None
    if isinstance(node.value, list | dict):
        raise node.fail("an expression is expected here")
    try:
        return parse_expression(str(node.value))
    except LanguageError as error:
        raise node.fail(str(error)) from None


def plain(node: Node) -> Value:
    """The bare value of a scalar or of lists of scalars. Raises CaseFileError for a mapping."""
    if isinstance(node.value, dict):
        raise node.fail("a number, a word or a list is expected here, not a mapping")
    if isinstance(node.value, list):
        return tuple(plain(item) for item in node.value)
    value: Value = node.value
    return value


def check_keys(node: Node, known: tuple[str, ...], what: str, required: tuple[str, ...] = ()) -> None:
    """Demand a mapping with all required and no unknown keys. Raises CaseFileError with the nearest key."""
    if not isinstance(node.value, dict):
        raise node.fail(f"{what} must be a mapping (`name: value`), not {_kind(node)}")
    for key, entry in node.value.items():
        if key not in known:
            raise entry.fail(f"unknown key `{key}` in {what}{did_you_mean(key, known)}; there are {', '.join(known)}")
    for key in required:
        if key not in node.value:
            raise node.fail(f"{what} needs `{key}`")


def items_of(node: Node, what: str) -> Iterable[tuple[str, Node]]:
    """The entries of a mapping; `what` names it in the complaint. Raises CaseFileError."""
    if not isinstance(node.value, dict):
        raise node.fail(f"{what} must be a mapping (`name: value`), not {_kind(node)}")
    items: Iterable[tuple[str, Node]] = node.value.items()
    return items


def list_of(node: Node | None, what: str) -> list[Node]:
    """The items of a list; an absent node is an empty one. Raises CaseFileError."""
    if node is None:
        return []
    if not isinstance(node.value, list):
        raise node.fail(f"{what} must be a list, not {_kind(node)}")
    return node.value


def word_of(node: Node, what: str) -> str:
    """The text of a node, stripped. Raises CaseFileError where it is empty or no text."""
    if not isinstance(node.value, str) or not node.value.strip():
        raise node.fail(f"`{what}` must be text, not {_kind(node)}")
    return node.value.strip()


def _kind(node: Node) -> str:
    if isinstance(node.value, dict):
        return "a mapping"
    return "a list" if isinstance(node.value, list) else f"{node.value!r}"
