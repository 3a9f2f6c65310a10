"""Families to cases: every combination of the variables that passes `where`, fully evaluated."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradcheck.cases.demands import KnownSpec
from gradcheck.cases.family import Family, InitSpec, InputSpec, Override
from gradcheck.cases.form import plain
from gradcheck.cases.naming import fill, join
from gradcheck.cases.source import Node
from gradcheck.language import Expression, evaluate, parse_expression
from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Case, Init, Input, KnownFailure, Shape, Value
from gradcheck.model.errors import CaseFileError
from gradcheck.model.init import INIT_KINDS
from gradcheck.model.place import Place

#: More combinations in one family are a slip of the pen.
MAX_COMBINATIONS = 100_000
#: ggml counts bytes in 64 bits; no tensor that large is meant.
MAX_ELEMENTS = 2**40

Scope = Mapping[str, Value]


def expand(families: Iterable[Family], mode: str) -> list[Case]:
    """The cases of `mode`, in the order of the files.

    A case that stands twice in a family is taken once. Raises CaseFileError where an expression fails or
    where two families give different cases the same id.
    """
    cases: dict[str, Case] = {}
    for family in families:
        if mode not in family.modes:
            continue
        for case in _family_cases(family, mode):
            other = cases.setdefault(case.id, case)
            if other.place != case.place:
                raise CaseFileError(f"the case {case.id} stands here and at {other.place}", case.place)
    return list(cases.values())


def case_of(family: Family, mode: str, scope: Scope) -> Case | None:
    """The case that a family makes of values for its variables, which it need not list; None where `where` drops it.

    Raises CaseFileError.
    """
    override = family.override(mode)
    return _family_case(family, override, scope, _Inputs(family, override))


def _family_cases(family: Family, mode: str) -> Iterator[Case]:
    override = family.override(mode)
    inputs = _Inputs(family, override)
    for scope in _combinations(family):
        case = _family_case(family, override, scope, inputs)
        if case is not None:
            yield case


def _family_case(family: Family, override: Override, scope: Scope, inputs: "_Inputs") -> Case | None:
    full = {**scope, "op": family.op}
    if not _holds(family.where, full, family.place):
        return None
    # After `where`, so that a derived name need not make sense for what is dropped.
    for name, node in family.let:
        full[name] = _value(node, full)
    return _case(family, override, scope, full, inputs) if _holds(override.where, full, family.place) else None


class _Inputs:
    """The inputs of a family's cases; one is made once for all cases in which the variables that it reads are the same.

    "The same" is the same object: a value of a variable lives as long as its family, and 1, 1.0 and true are equal.
    What `let` derives is made anew for each case, and what reads it too.
    """

    def __init__(self, family: Family, override: Override) -> None:
        inits = dict(override.inits)
        derived = {name for name, _ in family.let}
        self._inits = {spec.name: inits.get(spec.name, spec.init) for spec in family.inputs}
        reads = {spec.name: _names_in(spec, self._inits[spec.name]) for spec in family.inputs}
        self._reads = {name: tuple(names) for name, names in reads.items() if not names & derived}
        self._made: dict[tuple[Any, ...], Input] = {}

    def make(self, spec: InputSpec, scope: Scope) -> Input:
        """The input of a case with the names of `scope`. Raises CaseFileError."""
        reads = self._reads.get(spec.name)
        if reads is None:
            return _input(spec, self._inits[spec.name], scope)
        key = (spec.name, *[id(scope[name]) for name in reads if name in scope])
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = _input(spec, self._inits[spec.name], scope)
        return made


def _names_in(spec: InputSpec, init: InitSpec) -> frozenset[str]:
    """The names that an input's type, shape and values are computed from."""
    nodes = [spec.ne, *([spec.type] if spec.type else []), *(node for _, node in init.args)]
    names: set[str] = set()
    while nodes:
        value = nodes.pop().value
        if isinstance(value, list):
            nodes += value
        elif isinstance(value, str):
            # What cannot be read is told where it is evaluated.
            with contextlib.suppress(LanguageError):
                names |= parse_expression(value).names
    return frozenset(names)


def _combinations(family: Family) -> Iterator[dict[str, Value]]:
    total = sum(math.prod(len(values) for _, values in axes) for axes in family.sweeps)
    if total > MAX_COMBINATIONS:
        raise CaseFileError(
            f"{total:,} combinations of variables; at most {MAX_COMBINATIONS:,} in a family", family.place
        )
    for axes in family.sweeps:
        for values in itertools.product(*(values for _, values in axes)):
            found: dict[str, Value] = {}
            for (names, _), value in zip(axes, values, strict=True):
                if len(names) == 1:
                    found[names[0]] = value
                else:
                    assert isinstance(value, tuple)
                    found.update(zip(names, value, strict=True))
            yield {name: found[name] for name in family.variables}


def _case(family: Family, override: Override, scope: Scope, full: Scope, inputs: _Inputs) -> Case:
    variables = tuple(scope.items())
    present = [spec for spec in family.inputs if _holds(spec.condition, full, spec.place)]
    # In the graph, an input that is not there reads as None, unless a variable of that name says so itself.
    absent = dict.fromkeys(spec.name for spec in family.inputs)
    for spec in present:
        del absent[spec.name]
    return Case(
        op=family.op,
        name=_name(family, variables, full),
        vars=variables,
        scope=tuple({**absent, **full}.items()),
        inputs=tuple([inputs.make(spec, full) for spec in present]),
        graph=family.graph,
        flops=family.flops,
        bytes=family.bytes,
        place=family.place,
        limits=tuple(
            _limit(name, node, full) for name, node in {**dict(family.limits), **dict(override.limits)}.items()
        ),
        step=_step(override.step or family.step, full),
        gradient=family.gradient,
        picks=family.picks,
        placement=override.placement or family.placement,
        skip=override.skip,
        known=tuple(_known(spec) for spec in family.known if _holds(spec.where, full, family.place)),
    )


def _name(family: Family, variables: tuple[tuple[str, Value], ...], full: Scope) -> str:
    if family.template is None:
        return join(variables)
    try:
        return fill(family.template, full)
    except KeyError as error:
        raise CaseFileError(f"`id` uses the unknown variable {error}", family.place) from None


def _known(spec: KnownSpec) -> KnownFailure:
    return KnownFailure(spec.mode, spec.status, spec.reason, spec.ggml, spec.target, spec.variant, spec.says)


def _limit(name: str, node: Node, scope: Scope) -> tuple[str, float]:
    value = _value(node, scope)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise node.fail(f"the limit {name} must be a number that is not negative, not {value!r}")
    return name, float(value)


def _step(node: Node | None, scope: Scope) -> float | None:
    if node is None:
        return None
    step = _value(node, scope)
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, int | float) or not step > 0:
        raise node.fail(f"the step must be a positive number, not {step!r}")
    return float(step)


def _input(spec: InputSpec, init: InitSpec, scope: Scope) -> Input:
    kind = "f32" if spec.type is None else _type(spec.type, scope)
    differentiable = kind == "f32"
    return Input(
        name=spec.name,
        type=kind,
        ne=_shape(spec, scope),
        init=_init(init, scope, spec.place),
        param=spec.param and differentiable,
        reason=spec.reason,
        written=spec.written,
    )


def _type(node: Node, scope: Scope) -> str:
    if not isinstance(node.value, str):
        raise node.fail(f"a type is a word such as f32, not {node.value!r}")
    value = scope.get(node.value, node.value)
    if not node.value.isidentifier():
        value = _value(node, scope)
    if not isinstance(value, str):
        raise node.fail(f"a type is a word such as f32, not {value!r}")
    return value


def _shape(spec: InputSpec, scope: Scope) -> Shape:
    value = _value(spec.ne, scope)
    dims = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(dims) <= 4:
        raise spec.ne.fail(f"a shape has 1 to 4 dimensions, not {len(dims)}")
    for dim in dims:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 0:
            raise spec.ne.fail(f"the shape of {spec.name} is {list(dims)}; dimensions are whole and not negative")
    ne = tuple(dim for dim in dims if isinstance(dim, int))
    if math.prod(ne) > MAX_ELEMENTS:
        raise spec.ne.fail(f"the shape of {spec.name} is {list(dims)}: {math.prod(ne):,} elements")
    padded = ne + (1,) * (4 - len(ne))
    return padded[0], padded[1], padded[2], padded[3]


@functools.cache
def _plain_init(kind: str) -> Init:
    return Init(kind, tuple(INIT_KINDS[kind].items()))


def _init(spec: InitSpec, scope: Scope, place: Place) -> Init:
    if not spec.args:
        return _plain_init(spec.kind)
    given = {name: _value(node, scope) for name, node in spec.args}
    args = {name: given.get(name, default) for name, default in INIT_KINDS[spec.kind].items()}
    for name, value in args.items():
        if isinstance(value, str):
            raise CaseFileError(f"the argument {name} of init {spec.kind} must be a number, not {value!r}", place)
    return Init(spec.kind, tuple(args.items()))


def _value(node: Node, scope: Scope) -> Value:
    """A node's value: text is an expression, a list is evaluated item by item, the rest stands for itself."""
    if isinstance(node.value, list):
        return tuple(_value(item, scope) for item in node.value)
    if not isinstance(node.value, str):
        return plain(node)
    if node.value in scope:  # a plain name, the most common expression of all
        return scope[node.value]
    try:
        value: Value = evaluate(parse_expression(node.value), scope)
    except LanguageError as error:
        raise node.fail(str(error)) from None
    return value


def _holds(condition: Expression | None, scope: Mapping[str, Any], place: Place) -> bool:
    if condition is None:
        return True
    try:
        return bool(evaluate(condition, scope))
    except LanguageError as error:
        raise CaseFileError(f"`{condition.text}`: {error}", place) from None
