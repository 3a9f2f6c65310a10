"""How a report is to be shown: width, colour, detail; decided once from the stream and the options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from gradcheck.model.status import Status

if TYPE_CHECKING:
    from rich.console import Console

#: Where no terminal says how wide it is.
PLAIN_WIDTH = 100
NARROWEST = 20

#: Colour repeats what the words say; nothing is told by colour alone.
STYLES: dict[Status, str] = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.UNSUPPORTED: "dim",
    Status.SKIP: "dim",
    Status.VACUOUS: "bold red",
    Status.CRASH: "bold red",
    Status.TIMEOUT: "bold red",
    Status.ERROR: "bold red",
    Status.XFAIL: "yellow",
    Status.XPASS: "bold magenta",
}


class Detail(IntEnum):
    """How much of a run is told."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


@dataclass(frozen=True, slots=True)
class View:
    """What a text report must know of the place where it appears."""

    width: int = PLAIN_WIDTH
    color: bool = False
    detail: Detail = Detail.NORMAL
    unicode: bool = False


def view_of(stream: TextIO, color: bool | None, detail: Detail, environ: Mapping[str, str] = os.environ) -> View:
    """The view for a stream. `color` None: on a terminal that can, unless NO_COLOR is set."""
    terminal = is_terminal(stream)
    if color is None:
        color = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
    return View(_width(stream, environ), color, detail, terminal and encoding == "utf8")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream leads to a terminal; a closed or missing one does not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def console_for(view: View, file: TextIO, record: bool = False) -> "Console":
    """A rich console for a view that takes text as it is: ids are full of brackets, which are no markup."""
    from rich.console import Console

    return Console(
        file=file,
        record=record,
        width=view.width,
        force_terminal=view.color,
        no_color=not view.color,
        color_system="auto" if view.color else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        safe_box=False,
    )


def _width(stream: TextIO, environ: Mapping[str, str]) -> int:
    columns = environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return max(int(columns), NARROWEST)
    if is_terminal(stream):
        try:
            # A terminal that does not know its size says 0.
            return max(os.get_terminal_size(stream.fileno()).columns or 80, NARROWEST)
        except (OSError, ValueError):
            return 80
    return PLAIN_WIDTH
