"""What is known to fail in variants, whatever the family of the case: wrong kernels and rules, told once for each."""

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradcheck.cases.demands import known_of
from gradcheck.cases.form import check_keys, list_of, word_of
from gradcheck.cases.shipped import known_file
from gradcheck.cases.source import Node, read_documents
from gradcheck.model.case import Case, KnownFailure

_KEYS = ("mode", "op", "variant", "status", "says", "reason", "ggml", "target")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A known failure, and the ops whose variants have it; none means all."""

    ops: tuple[str, ...]
    failure: KnownFailure


def with_known(cases: Iterable[Case]) -> list[Case]:
    """The cases, in which variants know what is known of them. Raises CaseFileError."""
    return [replace(case, known=(*case.known, *_known(case))) if case.variant else case for case in cases]


def _known(case: Case) -> list[KnownFailure]:
    return [
        entry.failure
        for entry in _entries()
        if (not entry.ops or case.op in entry.ops) and entry.failure.concerns(case.variant)
    ]


@functools.cache
def _entries() -> tuple[_Entry, ...]:
    (document,) = read_documents(*known_file())
    return tuple(entry for node in list_of(document, "the known failures of variants") for entry in _read(node))


def _read(node: Node) -> list[_Entry]:
    """An entry for each mode and each pattern of `variant`, which may be lists. Raises CaseFileError."""
    check_keys(node, _KEYS, "a known failure of variants", required=("mode", "variant", "says", "reason", "ggml"))
    ops = tuple(word_of(item, "op") for item in list_of(node.value.get("op"), "`op`"))
    entries = []
    for mode, variant in itertools.product(_each(node.value["mode"]), _each(node.value["variant"])):
        fields = {name: entry for name, entry in node.value.items() if name != "op"}
        spec = known_of(replace(node, value={**fields, "mode": mode, "variant": variant}))
        failure = KnownFailure(spec.mode, spec.status, spec.reason, spec.ggml, spec.target, spec.variant, spec.says)
        entries.append(_Entry(ops, failure))
    return entries


def _each(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]
