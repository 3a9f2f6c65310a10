"""`gradcheck devices`: what -b can name."""

import json

import click

from gradcheck.cli import options as given
from gradcheck.cli.graph import aligned
from gradcheck.cli.stdout import write_stdout
from gradcheck.model import codec
from gradcheck.model.run import DeviceInfo, LibraryInfo
from gradcheck.reports.exit_code import ExitCode
from gradcheck.reports.wording import memory


@click.command("devices", epilog="Example: gradcheck devices")
@given.LISTED
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    metavar="FORM",
    help="text or json.",
)
def devices_command(backends: tuple[str, ...], form: str) -> int:
    """List the devices of the loaded ggml, with its version."""
    from gradcheck import api

    library = api.devices(backends)
    text = json.dumps(codec.encode(library), indent=1) + "\n" if form == "json" else library_text(library)
    write_stdout([text])
    return ExitCode.GOOD if library.devices else ExitCode.NOTHING


def library_text(library: LibraryInfo) -> str:
    """The library on a line, then a table of its devices."""
    commit = f" ({library.ggml_commit})" if library.ggml_commit not in ("", "unknown") else ""
    versions = f"ggml {library.ggml_version}{commit}, ggml-python {library.ggml_python_version}"
    lines = [f"{versions}, {library.path}", ""]
    if not library.devices:
        return "\n".join([*lines, "no device", ""])
    rows: list[tuple[str, ...]] = [("name", "registry", "type", "free", "memory", "description")]
    rows += [_cells(device) for device in library.devices]
    return "\n".join([*lines, *aligned(rows, right=(3, 4)), ""])


def _cells(device: DeviceInfo) -> tuple[str, ...]:
    sizes = (memory(device.memory_free), memory(device.memory_total))
    return (device.name, device.registry, device.type, *sizes, device.description)
