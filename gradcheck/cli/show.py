"""`gradcheck show`: one case as a person wants to read it."""

from collections.abc import Iterator

import click

from gradcheck.cli import options as given
from gradcheck.cli.graph import aligned, graph_lines, shape
from gradcheck.cli.parameters import split_ops
from gradcheck.cli.stdout import write_stdout
from gradcheck.model.case import Case, Init, Input, Value
from gradcheck.model.errors import InvalidCase, UsageError
from gradcheck.model.result import Outcome
from gradcheck.variants import VARIANTS


@click.command("show", epilog="Example: gradcheck show 'SILU(type=f32,ne_a=[128,2,2,2],v=0)'")
@click.argument("case_id", metavar="CASE")
@given.options(
    given.CASE_FILES,
    given.mode("The case as this mode takes it"),
)
def show_command(case_id: str, files: tuple[str, ...], mode: str) -> int:
    """Show a case: its inputs, its forward and its backward graph."""
    from gradcheck import api

    cases = api.select_cases(api.Selection(ops=tuple(split_ops(case_id)), pattern=None, files=files), mode)
    if len(cases) != 1:
        example = f", for example '{cases[0].id}'" if cases else ""
        raise UsageError(f"{case_id!r} means {len(cases)} cases; show takes the id of one{example}")
    case = cases[0]
    forward = next(iter(api.graphs(cases))).outcome
    if forward.out < 0:
        raise InvalidCase(f"{case.place}: {case.id}: {forward.reason or forward.status}")
    lines = [*case_lines(case), *_graph(forward), *_backward(case, forward)]
    write_stdout(f"{line}\n" for line in lines)
    return 0


def case_lines(case: Case) -> Iterator[str]:
    """What the case file says: place, inputs, statements, and what is known and demanded."""
    yield case.id
    yield f"at {case.place}"
    if case.variant:
        yield f"variant: {VARIANTS[case.variant.partition(':')[0]].doc}"
    if case.skip:
        yield f"skipped: {case.skip}"
    # What is known of a variant by ggml's words is said of every variant.
    for known in (known for known in case.known if not (case.variant and known.says)):
        what = f"known failure of {known.variant}" if known.variant else "known failure"
        yield f"{what}: {known.mode} ends as {known.status} on ggml {known.ggml}: {known.reason}"
    if case.placement:
        place = "the CPU" if case.placement == "cpu" else "the target"
        yield f"expected: with eval --sched every node runs on {place}"
    if case.limits:
        yield "limits: " + ", ".join(f"{name} {value:g}" for name, value in case.limits)
    yield from ("", "inputs")
    rows = [("name", "type", "ne", "values", "differentiated")]
    rows += [(i.name, i.type, shape(i.ne), _init_text(i.init), _param_text(i)) for i in case.inputs]
    yield from _indented(aligned(rows))
    yield from ("", "statements")
    yield from _indented(line for line in case.graph.splitlines() if line.strip())


def _graph(forward: Outcome) -> Iterator[str]:
    yield from ("", "forward")
    yield from _indented(graph_lines(forward.tensors, forward.out))


def _backward(case: Case, forward: Outcome) -> Iterator[str]:
    from gradcheck import api

    yield from ("", "backward")
    if not case.params:
        yield "  none: no input is differentiated"
        return
    backward = next(iter(api.graphs([case], backward=True))).outcome
    start = len(forward.tensors)
    if len(backward.tensors) <= start:
        yield f"  none: {backward.reason or 'the gradient of out is passed on as it is'}"
        return
    yield from _indented(graph_lines(backward.tensors, backward.out, start))


def _init_text(init: Init) -> str:
    arguments = ", ".join(f"{name}={_value_text(value)}" for name, value in init.args if value is not None)
    return f"{init.kind}({arguments})" if arguments else init.kind


def _value_text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_value_text, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _param_text(source: Input) -> str:
    if source.param:
        return "yes"
    return f"no: {source.reason}" if source.reason else "no"


def _indented(lines: "Iterator[str] | list[str]") -> Iterator[str]:
    return (f"  {line}" for line in lines)
