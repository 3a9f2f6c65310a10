"""`gradcheck list`: the cases, their ops or their graphs, one a line; and which ops of ggml they cover."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gradcheck.cli import options as given
from gradcheck.cli.stdout import write_stdout
from gradcheck.model.case import Case
from gradcheck.model.errors import InvalidCase, UsageError
from gradcheck.model.status import Status
from gradcheck.reports.exit_code import ExitCode

if TYPE_CHECKING:
    from gradcheck.model.result import Result


@click.command("list", epilog="Example: gradcheck list -o 'MUL*' -p type=f16")
@given.options(
    *given.SELECTION,
    given.variants("none"),
    given.mode("The cases of this mode"),
    click.option("--ops", "by_op", is_flag=True, help="Only the ops and how many cases each has."),
    click.option("--graph", is_flag=True, help="Every case with the tensors of its forward graph."),
    click.option(
        "--coverage", is_flag=True, help="Every op of the loaded ggml, its cases in all modes and what is missing."
    ),
    click.option("--missing", is_flag=True, help="With --coverage: only ops of which something is missing."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "jsonl", "json"]),
        default="text",
        show_default=True,
        metavar="FORM",
        help="text, jsonl (a line a case) or json (one array).",
    ),
)
def list_command(
    *,
    ops: tuple[tuple[str, ...], ...],
    pattern: str | None,
    files: tuple[str, ...],
    variants: tuple[str, ...] | None,
    mode: str,
    by_op: bool,
    graph: bool,
    coverage: bool,
    missing: bool,
    form: str,
) -> int:
    """List the cases, in the form in which -o takes them."""
    from gradcheck import api

    if by_op + graph + coverage > 1:
        raise UsageError("of --ops, --graph and --coverage only one can be given")
    if missing and not coverage:
        raise UsageError("--missing goes with --coverage")
    named = tuple(op for part in ops for op in part)
    if coverage:
        return _coverage(named, pattern, files, missing, form)
    selection = api.Selection(ops=named, pattern=pattern, files=files, variants=variants)
    cases = api.select_cases(selection, mode)
    if by_op:
        lines = _op_lines(cases, form)
    elif graph:
        lines = _graph_lines(api.graphs(cases), form)
    elif form == "text":
        lines = (case.id for case in cases)
    else:
        lines = (_json(_record(case)) for case in cases)
    write_stdout(_array(lines) if form == "json" else (f"{line}\n" for line in lines))
    return ExitCode.GOOD if cases else ExitCode.NOTHING


def _coverage(named: tuple[str, ...], pattern: str | None, files: tuple[str, ...], missing: bool, form: str) -> int:
    from gradcheck import api
    from gradcheck.cli.coverage import chosen, coverage_lines, coverage_records

    context = click.get_current_context()
    if context.get_parameter_source("mode") is not ParameterSource.DEFAULT or pattern is not None:
        raise UsageError("--coverage looks at whole ops in all modes; leave --mode and -p out")
    rows = chosen(api.coverage(files), named, missing)
    lines = coverage_lines(rows) if form == "text" else map(_json, coverage_records(rows))
    write_stdout(_array(lines) if form == "json" else (f"{line}\n" for line in lines))
    return ExitCode.GOOD if rows else ExitCode.NOTHING


def _record(case: Case) -> dict[str, Any]:
    variant = {"variant": case.variant} if case.variant else {}
    return {"op": case.op, "vars": case.name, **variant, "place": str(case.place)}


def _op_lines(cases: Iterable[Case], form: str) -> Iterator[str]:
    counts = Counter(case.op for case in cases)
    width = max(map(len, counts), default=0)
    digits = len(str(max(counts.values(), default=0)))
    for op, count in counts.items():
        yield f"{op:{width}}  {count:{digits}}" if form == "text" else _json({"op": op, "cases": count})


def _graph_lines(results: "Iterable[Result]", form: str) -> Iterator[str]:
    """The graphs as they come; a case that is wrong ends the list, since a list with holes misleads.

    What ggml itself does not build has no tensors, `out` -1 and the reason.
    """
    for result in results:
        outcome = result.outcome
        if outcome.out < 0 and result.status is not Status.UNSUPPORTED:
            raise InvalidCase(f"{result.place}: {result.case_id}: {outcome.reason or result.status}")
        if form == "text":
            from gradcheck.cli.graph import graph_lines

            drawn = graph_lines(outcome.tensors, outcome.out) if outcome.out >= 0 else [f"none: {outcome.reason}"]
            yield "\n".join([result.case_id, *drawn, ""])
        else:
            variables, _, variant = result.case_id[len(result.op) + 1 :].rpartition(")")
            record: dict[str, Any] = {"op": result.op, "vars": variables}
            record |= {"variant": variant[1:]} if variant else {}
            record |= {"out": outcome.out, "tensors": outcome.tensors, **dict(outcome.counts)}
            yield _json(record | ({"reason": outcome.reason} if outcome.out < 0 else {}))


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"))


def _array(lines: Iterable[str]) -> Iterator[str]:
    """Lines of JSON as one array, written as they come."""
    lead = "[\n"
    for line in lines:
        yield lead + line
        lead = ",\n"
    yield "\n]\n" if lead == ",\n" else "[]\n"
