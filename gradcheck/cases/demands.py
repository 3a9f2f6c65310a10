"""What a family demands of its cases and knows about them: limits, what indices pick, known failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gradcheck.cases.form import check_keys, expression_of, items_of, word_of
from gradcheck.cases.source import Node
from gradcheck.language import Expression
from gradcheck.model.case import Picks
from gradcheck.model.limits import DEFAULT_LIMITS, MODES
from gradcheck.model.nearest import did_you_mean
from gradcheck.model.status import Status
from gradcheck.variants import VARIANTS

_PICKS_KEYS = ("from", "order")
_EXPECT_KEYS = ("placement",)
_PLACES = ("target", "cpu")
_KNOWN_KEYS = ("mode", "where", "status", "reason", "ggml", "target", "variant", "says")

#: Bounds by metric; they may be expressions.
Limits = tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class KnownSpec:
    """A known failure and the condition under which a case has it."""

    mode: str
    where: Expression | None
    status: Status
    reason: str
    ggml: str
    target: str
    variant: str = ""
    says: str = ""


def limits_of(node: Node | None) -> Limits:
    """The bounds by metric; none for an absent node. Raises CaseFileError."""
    known = sorted({name for limits in DEFAULT_LIMITS.values() for name in limits})
    limits = []
    for name, entry in items_of(node, "`limits`") if node else ():
        if name not in known:
            raise entry.fail(f"unknown limit {name}{did_you_mean(name, known)}; there are {', '.join(known)}")
        limits.append((name, entry))
    return tuple(limits)


def picks_of(node: Node | None, inputs: Sequence[str]) -> Picks | None:
    """`picks: NAME`, or `picks: {from: NAME, order: free}`; None for an absent node. Raises CaseFileError."""
    if node is None:
        return None
    fields = node.value if isinstance(node.value, dict) else {"from": node}
    if isinstance(node.value, dict):
        check_keys(node, _PICKS_KEYS, "`picks`", required=("from",))
    source = word_of(fields["from"], "picks")
    if source not in inputs:
        raise fields["from"].fail(f"`picks` names no input {source}{did_you_mean(source, inputs)}")
    order = word_of(fields["order"], "order") if "order" in fields else "fixed"
    if order not in ("fixed", "free"):
        raise fields["order"].fail(f"`order` is fixed or free, not {order}")
    return Picks(source, ordered=order == "fixed")


def placement_of(node: Node | None) -> str:
    """What `expect: {placement: target}` says, "" for an absent node. Raises CaseFileError."""
    if node is None:
        return ""
    check_keys(node, _EXPECT_KEYS, "`expect`", required=_EXPECT_KEYS)
    entry = node.value["placement"]
    place = word_of(entry, "placement")
    if place not in _PLACES:
        raise entry.fail(f"`placement` is {' or '.join(_PLACES)}, not {place}{did_you_mean(place, _PLACES)}")
    return place


def known_of(node: Node) -> KnownSpec:
    """One known failure. Raises CaseFileError."""
    check_keys(node, _KNOWN_KEYS, "a known failure", required=("mode", "reason", "ggml"))
    get = node.value.get
    mode = word_of(node.value["mode"], "mode")
    if mode not in MODES:
        raise node.fail(f"unknown mode {mode!r}{did_you_mean(mode, MODES)}")
    status = word_of(get("status"), "status") if get("status") else "FAIL"
    if status not in Status.__members__:
        raise node.fail(f"unknown status {status!r}{did_you_mean(status, Status.__members__)}")
    return KnownSpec(
        mode=mode,
        where=expression_of(get("where")),
        status=Status(status),
        reason=word_of(node.value["reason"], "reason"),
        ggml=str(node.value["ggml"].value),
        target=word_of(get("target"), "target") if get("target") else "*",
        variant=_variants(get("variant")),
        says=word_of(get("says"), "says") if get("says") else "",
    )


def _variants(node: Node | None) -> str:
    """A pattern of variants, "" for an absent node. Raises CaseFileError where no variant is of it."""
    if node is None:
        return ""
    pattern = word_of(node, "variant")
    name = pattern.partition(":")[0]
    if not any(fnmatchcase(known, name) for known in VARIANTS):
        raise node.fail(f"no variant is of {name}{did_you_mean(name, VARIANTS)}; there are {', '.join(VARIANTS)}")
    return pattern
