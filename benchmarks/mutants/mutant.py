"""The mutations of ggml as data: where, what instead, and what must be said to see it.

`list/*.yaml` has a document per source file:

    file: src/ggml-cpu/vec.h              below the root of ggml
    mutants:
      - name: silu-back-1.01              what GRADCHECK_MUTANT takes
        in: [ggml_silu_backward_f32(]     anchors; the first is once in the file, each next one after the one before
        old: "dy*s*(1.0f + x*(1.0f - s))" the first such text after them in that function or case; spaces do not count
        new: "1.01f*dy*s*(1.0f + x*(1.0f - s))"
        form: expression                  or statement
        kind: factor 1.01
        ops: [SILU, SWIGLU]               the ops whose cases are run
        why: what a person may have got wrong
        needs: ["--threads 2"]            optional: options of gradcheck for a second look, in their order
        params: type_a=f32                optional: `-p` of both tools
        equivalent: no gradient differs   optional: why no tool for gradients can see it
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).parent / "list"
#: The kind of what is wrong with more than one thread only.
THREADS = "threads"


class InvalidMutants(Exception):
    """The list of mutants is wrong, or does not fit the source; the text says where."""


class Form(StrEnum):
    """What `old` is in C: the mutant chooses with `?:` or with `if`."""

    EXPRESSION = "expression"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation. The fields are those of the YAML files."""

    name: str
    file: str
    anchors: tuple[str, ...]
    old: str
    new: str
    form: Form
    kind: str
    ops: tuple[str, ...]
    why: str
    needs: tuple[str, ...] = ()
    params: str = ""
    equivalent: str = ""


_REQUIRED = {"name", "in", "old", "new", "form", "kind", "ops", "why"}
_OPTIONAL = {"needs", "params", "equivalent"}


def load(folder: Path = LIST) -> tuple[Mutant, ...]:
    """All mutants, in the order of the files' names and of the files. Raises InvalidMutants."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError as error:
            raise InvalidMutants(f"{path.name}: {' '.join(str(error).split())}") from None
        for document in documents:
            found += _document(path.name, document)
    for name, count in Counter(mutant.name for mutant in found).items():
        if count > 1:
            raise InvalidMutants(f"{name}: {count} mutants have this name")
    return tuple(found)


def chosen(mutants: Sequence[Mutant], names: Sequence[str]) -> tuple[Mutant, ...]:
    """Those of these names, in the order of the list; all where no name is given. Raises InvalidMutants."""
    unknown = sorted(set(names) - {mutant.name for mutant in mutants})
    if unknown:
        raise InvalidMutants(f"there is no mutant {', '.join(unknown)}")
    return tuple(mutant for mutant in mutants if not names or mutant.name in names)


def _document(place: str, document: Any) -> list[Mutant]:
    if not isinstance(document, dict) or set(document) != {"file", "mutants"}:
        raise InvalidMutants(f"{place}: a document has `file` and `mutants`, and nothing else")
    return [_mutant(place, str(document["file"]), fields) for fields in document["mutants"]]


def _mutant(place: str, file: str, fields: dict[str, Any]) -> Mutant:
    name = str(fields.get("name", "one without a name"))
    missing, unknown = _REQUIRED - set(fields), set(fields) - _REQUIRED - _OPTIONAL
    if missing or unknown:
        wrong = [f"lacks {key}" for key in sorted(missing)] + [f"has the unknown {key}" for key in sorted(unknown)]
        raise InvalidMutants(f"{place}: {name} {', '.join(wrong)}")
    if fields["form"] not in list(Form):
        raise InvalidMutants(f"{place}: {name}: the form is {' or '.join(Form)}, not {fields['form']}")
    if not fields["ops"] or not fields["in"]:
        raise InvalidMutants(f"{place}: {name}: `ops` and `in` must not be empty")
    return Mutant(
        name=name,
        file=file,
        anchors=tuple(fields["in"]),
        old=fields["old"].strip(),
        new=fields["new"].strip(),
        form=Form(fields["form"]),
        kind=fields["kind"],
        ops=tuple(fields["ops"]),
        why=fields["why"],
        needs=tuple(fields.get("needs", ())),
        params=fields.get("params", ""),
        equivalent=fields.get("equivalent", ""),
    )
