"""The report that a person reads: tables, every bad case with its evidence, a summary line."""

from io import StringIO
from typing import TYPE_CHECKING

from gradcheck.model.run import Run, RunInfo
from gradcheck.reports.exit_code import ExitCode, exit_code
from gradcheck.reports.failures import case_lines, failure_blocks, failure_ids
from gradcheck.reports.flakiness import notes, sheet_table, sheets
from gradcheck.reports.placement import placement_lines
from gradcheck.reports.summary import summary_line
from gradcheck.reports.table import result_tables
from gradcheck.reports.view import Detail, View, console_for
from gradcheck.reports.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

#: Colour repeats what the words of the line say.
_SUMMARY_STYLES: dict[ExitCode, str] = {
    ExitCode.GOOD: "bold green",
    ExitCode.BAD: "bold red",
    ExitCode.USAGE: "bold red",
    ExitCode.NOTHING: "bold yellow",
    ExitCode.INTERRUPTED: "bold yellow",
}


def render_text(run: Run, view: View) -> str:
    """The whole report as text, with ANSI colour where the view has it."""
    file = StringIO()
    print_report(run, view, console_for(view, file))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def print_report(run: Run, view: View, console: "Console") -> None:
    """Print the report to a console, in the order in which it is read."""
    if view.detail is Detail.QUIET:
        for line in failure_ids(run):
            console.print(line, soft_wrap=True)
    else:
        _print_details(run, view, console)
    for places in placement_lines(run):
        console.print(places, soft_wrap=True)
    for note in notes(run):
        console.print(note, soft_wrap=True)
    console.print(summary_line(run), style=_SUMMARY_STYLES[exit_code(run)], soft_wrap=True)


def _print_details(run: Run, view: View, console: "Console") -> None:
    # Ids and commands are printed unwrapped: whoever copies them gets one line.
    console.print(header_line(run.info), soft_wrap=True)
    console.print()
    if view.detail is Detail.VERBOSE and run.results:
        for line in case_lines(run):
            console.print(line, soft_wrap=True)
        console.print()
    for table in result_tables(run, view):
        console.print(table)
        console.print()
    for sheet in sheets(run):
        console.print(sheet_table(sheet, view))
        console.print()
    for block in failure_blocks(run, view.detail):
        for line in block:
            console.print(line, soft_wrap=True)
        console.print()


def header_line(info: RunInfo) -> str:
    """What ran: gradcheck, ggml, and the devices by their descriptions."""
    library = info.library
    commit = f" ({library.ggml_commit})" if library.ggml_commit not in ("", "unknown") else ""
    described = {device.name: device.description for device in library.devices}
    devices = ", ".join(f"{t} ({described[t]})" if described.get(t) else t for t in info.targets)
    ggml = f"ggml {library.ggml_version}{commit}"
    # Times mean nothing without them, and what is no CPU may use them too (BLAS does).
    threads = f", {plural(info.settings.threads, 'CPU thread')}" if info.mode == "perf" else ""
    return f"gradcheck {info.gradcheck_version}, {ggml}, {devices or 'no device'}{threads}"
