"""YAML text to values that know their line; scalars follow YAML 1.2 (1e-6 is a number, `no` a word)."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gradcheck.model.errors import CaseFileError
from gradcheck.model.place import Place

#: A case file is written by a person: more than this is a mistake (or aliases that multiply).
MAX_NODES = 200_000
MAX_BYTES = 4_000_000

_INT = re.compile(r"[-+]?[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "true": True, "false": False,
    ".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan,
}  # fmt: skip
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser is ten times faster


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list of nodes or a mapping of names to nodes, with the place where it stands."""

    value: Any
    place: Place

    def fail(self, message: str) -> CaseFileError:
        """An error at this place, to be raised."""
        return CaseFileError(message, self.place)


def read_documents(path: Path, shown: str) -> list[Node]:
    """Every YAML document of a file. Raises CaseFileError with the place of what is wrong."""
    text = _read_text(path, shown)
    try:
        trees = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(shown, mark.line + 1 if mark else 1)
        raise CaseFileError(f"not YAML: {error.problem or error.context}", place) from None
    except yaml.YAMLError as error:
        raise CaseFileError(f"not YAML: {str(error).splitlines()[0]}", Place(shown, 1)) from None
    except RecursionError:
        raise CaseFileError("nested too deep to be a case file", Place(shown, 1)) from None
    converter = _Converter(shown)
    try:
        nodes = [converter.convert(tree) for tree in trees if tree is not None]
    except RecursionError:
        raise CaseFileError("nested too deep to be a case file", Place(shown, 1)) from None
    if all(node.value is None for node in nodes):
        raise CaseFileError("no cases: the file is empty; a case needs `op`, `inputs` and `graph`", Place(shown, 1))
    return [node for node in nodes if node.value is not None]


def _read_text(path: Path, shown: str) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CaseFileError(f"larger than {MAX_BYTES:,} bytes; that is not a case file", Place(shown, 1))
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise CaseFileError("not UTF-8 text; save the file as UTF-8", Place(shown, line)) from None
    except OSError as error:
        raise CaseFileError(f"cannot read {shown}: {error.strerror}") from None


class _Converter:
    """Turns the tree of the YAML library into nodes; knows where it is, so that an alias cannot recurse."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._open: set[int] = set()
        self._count = 0

    def convert(self, tree: yaml.Node) -> Node:
        place = Place(self._shown, tree.start_mark.line + 1)
        self._count += 1
        if self._count > MAX_NODES:
            raise CaseFileError(f"more than {MAX_NODES:,} values (do aliases multiply?)", place)
        if isinstance(tree, yaml.ScalarNode):
            return Node(_scalar(tree, place), place)
        if id(tree) in self._open:
            raise CaseFileError("an alias contains itself", place)
        self._open.add(id(tree))
        try:
            if isinstance(tree, yaml.SequenceNode):
                return Node([self.convert(item) for item in tree.value], place)
            return Node(self._mapping(tree), place)
        finally:
            self._open.discard(id(tree))

    def _mapping(self, tree: yaml.Node) -> dict[str, Node]:
        result: dict[str, Node] = {}
        for key_tree, value_tree in tree.value:
            key = self.convert(key_tree)
            if not isinstance(key.value, str):
                raise key.fail(f"a name is expected here, not {key.value!r}")
            if key.value in result:
                raise key.fail(f"`{key.value}` stands here twice")
            result[key.value] = self.convert(value_tree)
        return result


def _scalar(tree: yaml.ScalarNode, place: Place) -> Any:
    if tree.tag and not tree.tag.startswith("tag:yaml.org,2002:"):
        raise CaseFileError(f"the tag {tree.tag} has no meaning here", place)
    text: str = tree.value
    if tree.style:  # quoted or block text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text) <= 30 else text
    if _HEX.fullmatch(text):
        return int(text, 16)
    return float(text) if _FLOAT.fullmatch(text) else text
