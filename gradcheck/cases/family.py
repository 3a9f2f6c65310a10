"""A family as it stands in a case file: checked for its form, not yet expanded into cases."""

from dataclasses import dataclass
from typing import Any

from gradcheck.cases.demands import KnownSpec, Limits, known_of, limits_of, picks_of, placement_of
from gradcheck.cases.form import check_keys, expression_of, items_of, list_of, plain, word_of
from gradcheck.cases.source import Node
from gradcheck.language import Expression, parse_graph
from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Picks, Value
from gradcheck.model.init import INIT_KINDS, REQUIRED
from gradcheck.model.limits import MODES
from gradcheck.model.nearest import did_you_mean
from gradcheck.model.place import Place

_FAMILY_KEYS = ("op", "doc", "vars", "sweeps", "where", "let", "id", "inputs", "graph", "flops", "bytes", "limits",
                "step", "gradient", "picks", "expect", "modes", "known", *MODES)  # fmt: skip
_OVERRIDE_KEYS = ("where", "skip", "limits", "step", "inputs", "expect")
_INPUT_KEYS = ("type", "ne", "init", "param", "if", "written")


@dataclass(frozen=True, slots=True)
class InitSpec:
    """An init whose arguments may still be expressions."""

    kind: str
    args: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input whose type, shape and condition may still be expressions."""

    name: str
    type: Node | None
    ne: Node
    init: InitSpec
    param: bool
    reason: str
    condition: Expression | None
    written: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Override:
    """What a mode changes in a family."""

    where: Expression | None = None
    skip: str = ""
    limits: Limits = ()
    step: Node | None = None
    inits: tuple[tuple[str, InitSpec], ...] = ()
    placement: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All cases of an op that share a graph. `sweeps` are combinations of values by (tied) variable names."""

    op: str
    sweeps: tuple[tuple[tuple[tuple[str, ...], tuple[Value, ...]], ...], ...]
    variables: tuple[str, ...]
    where: Expression | None
    let: tuple[tuple[str, Node], ...]
    template: str | None
    inputs: tuple[InputSpec, ...]
    graph: str
    flops: str
    bytes: str
    limits: Limits
    step: Node | None
    gradient: str
    picks: Picks | None
    placement: str
    modes: tuple[str, ...]
    known: tuple[KnownSpec, ...]
    overrides: tuple[tuple[str, Override], ...]
    place: Place

    def override(self, mode: str) -> Override:
        """What `mode` changes; an empty override where it says nothing."""
        return dict(self.overrides).get(mode, Override())


def read_families(document: Node) -> list[Family]:
    """The families of one document: a mapping is one, a list holds several. Raises CaseFileError."""
    entries = document.value if isinstance(document.value, list) else [document]
    return [family for entry in entries for family in _families(entry)]


def _families(node: Node) -> list[Family]:
    check_keys(node, _FAMILY_KEYS, "a family", required=("op", "inputs", "graph"))
    ops = node.value["op"]
    names = [word_of(item, "op") for item in ops.value] if isinstance(ops.value, list) else [word_of(ops, "op")]
    if not names:
        raise ops.fail("`op` names no op")
    return [_family(node, op) for op in names]


def _family(node: Node, op: str) -> Family:
    get = node.value.get
    variables, sweeps = _sweeps(get("vars"), get("sweeps"))
    inputs = tuple(_input(name, entry) for name, entry in items_of(node.value["inputs"], "`inputs`"))
    gradient = word_of(get("gradient"), "gradient") if get("gradient") else "nonzero"
    if gradient not in ("zero", "nonzero"):
        raise get("gradient").fail(f"`gradient` is zero or nonzero, not {gradient}")
    return Family(
        op=op,
        sweeps=sweeps,
        variables=variables,
        where=expression_of(get("where")),
        let=tuple(items_of(get("let"), "`let`")) if get("let") else (),
        template=word_of(get("id"), "id") if get("id") else None,
        inputs=inputs,
        graph=_graph(node.value["graph"]),
        flops=_cost(get("flops")),
        bytes=_cost(get("bytes")),
        limits=limits_of(get("limits")),
        step=get("step"),
        gradient=gradient,
        picks=picks_of(get("picks"), [spec.name for spec in inputs]),
        placement=placement_of(get("expect")),
        modes=_modes(get("modes")),
        known=tuple(known_of(item) for item in list_of(get("known"), "`known`")),
        overrides=tuple((mode, _override(get(mode), inputs)) for mode in MODES if get(mode)),
        place=node.place,
    )


def _sweeps(vars_node: Node | None, sweeps_node: Node | None) -> tuple[tuple[str, ...], Any]:
    base = [_axis(name, node) for name, node in items_of(vars_node, "`vars`")] if vars_node else []
    names = tuple(name for axis, _ in base for name in axis)
    for name in names:
        if names.count(name) > 1 and vars_node:
            raise vars_node.fail(f"the variable {name} stands here twice")
    if sweeps_node is None:
        return names, (tuple(base),)
    sweeps = []
    for entry in list_of(sweeps_node, "`sweeps`"):
        axes = [_axis(name, node) for name, node in items_of(entry, "a sweep")]
        given = {name for axis, _ in axes for name in axis}
        for name in sorted(given - set(names)):
            raise entry.fail(f"a sweep sets the variable {name}, which `vars` does not have{did_you_mean(name, names)}")
        kept = [axis for axis in base if not given & set(axis[0])]
        for axis, _ in base:
            if len(axis) > 1 and given & set(axis) and not set(axis) <= given:
                raise entry.fail(f"a sweep must set all of {', '.join(axis)}, since they are tied")
        sweeps.append(tuple(kept + axes))
    return names, tuple(sweeps)


def _axis(key: str, node: Node) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """`name: [values]`, or `a, b: [[value of a, value of b], ...]` for variables that go together."""
    names = tuple(part.strip() for part in key.split(","))
    for name in names:
        if not name.isidentifier():
            raise node.fail(f"{name!r} cannot be the name of a variable")
    values = tuple(plain(item) for item in node.value) if isinstance(node.value, list) else (plain(node),)
    if not values:
        raise node.fail(f"the variable {key} has no values")
    if len(names) > 1:
        for value in values:
            if not isinstance(value, tuple) or len(value) != len(names):
                raise node.fail(f"each entry of `{key}` must be a list of {len(names)} values")
    return names, values


def _input(name: str, node: Node) -> InputSpec:
    if not name.isidentifier():
        raise node.fail(f"{name!r} cannot be the name of an input")
    if isinstance(node.value, dict):
        check_keys(node, _INPUT_KEYS, f"the input {name}", required=("ne",))
        fields: dict[str, Node] = node.value
    else:
        fields = {"ne": node}
    get = fields.get
    param, reason = True, ""
    if (entry := get("param")) is not None:
        if isinstance(entry.value, str) and entry.value.strip():
            param, reason = False, entry.value.strip()
        elif entry.value is False:
            raise entry.fail('an input that is not differentiated says why: `param: "labels have no gradient"`')
        elif entry.value is not True:
            raise entry.fail("`param` is true, or the reason why the input is not differentiated")
    written = get("written")
    if written is not None and not isinstance(written.value, bool):
        raise written.fail("`written` is true where the op changes the input by design, or false")
    return InputSpec(
        name=name,
        type=get("type"),
        ne=fields["ne"],
        init=_init(get("init")),
        param=param,
        reason=reason,
        condition=expression_of(get("if")),
        written=bool(written and written.value),
        place=node.place,
    )


def _init(node: Node | None) -> InitSpec:
    if node is None:
        return InitSpec("uniform", ())
    fields = dict(node.value) if isinstance(node.value, dict) else {"kind": node}
    if "kind" not in fields:
        raise node.fail("`init` needs a `kind`: " + ", ".join(INIT_KINDS))
    kind = word_of(fields.pop("kind"), "kind")
    if kind not in INIT_KINDS:
        raise node.fail(f"unknown init {kind!r}{did_you_mean(kind, INIT_KINDS)}; there are {', '.join(INIT_KINDS)}")
    for name, entry in fields.items():
        if name not in INIT_KINDS[kind]:
            raise entry.fail(f"the init {kind} has no argument {name}{did_you_mean(name, INIT_KINDS[kind])}")
    for name, default in INIT_KINDS[kind].items():
        if default == REQUIRED and name not in fields:
            raise node.fail(f"the init {kind} needs the argument {name}")
    return InitSpec(kind, tuple(fields.items()))


def _override(node: Node, inputs: tuple[InputSpec, ...]) -> Override:
    check_keys(node, _OVERRIDE_KEYS, "a mode's overrides")
    get = node.value.get
    inits = []
    for name, entry in items_of(get("inputs"), "`inputs`") if get("inputs") else ():
        if name not in {spec.name for spec in inputs}:
            raise entry.fail(f"no input {name} to override{did_you_mean(name, [spec.name for spec in inputs])}")
        check_keys(entry, ("init",), f"the override of {name}", required=("init",))
        inits.append((name, _init(entry.value["init"])))
    skip = word_of(get("skip"), "skip") if get("skip") else ""
    return Override(
        where=expression_of(get("where")),
        skip=skip,
        limits=limits_of(get("limits")),
        step=get("step"),
        inits=tuple(inits),
        placement=placement_of(get("expect")),
    )


def _modes(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return MODES
    modes = tuple(word_of(item, "mode") for item in list_of(node, "`modes`"))
    for mode in modes:
        if mode not in MODES:
            raise node.fail(f"unknown mode {mode!r}{did_you_mean(mode, MODES)}; there are {', '.join(MODES)}")
    return modes


def _cost(node: Node | None) -> str:
    expression = expression_of(node)
    return expression.text if expression else ""


def _graph(node: Node) -> str:
    text = word_of(node, "graph")
    try:
        parse_graph(text)
    except LanguageError as error:
        raise node.fail(f"graph: {error}") from None
    return text.strip()
