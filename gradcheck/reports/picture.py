"""The report as a picture for a web page: SVG or HTML, drawn by rich."""

from dataclasses import replace
from io import StringIO
from textwrap import shorten
from typing import TYPE_CHECKING

from gradcheck.model.run import Run
from gradcheck.reports.text import print_report
from gradcheck.reports.view import View, console_for

if TYPE_CHECKING:
    from rich.console import Console


def render_svg(run: Run, view: View) -> str:
    """The report as a terminal window in SVG, titled with the command."""
    return _recorded(run, view).export_svg(
        title=shorten(" ".join(run.info.command), view.width // 2, placeholder=" ...")
    )


def render_html(run: Run, view: View) -> str:
    """The report as a page of HTML."""
    return _recorded(run, view).export_html()


def _recorded(run: Run, view: View) -> "Console":
    drawn = replace(view, color=True, unicode=True)
    console = console_for(drawn, StringIO(), record=True)
    print_report(run, drawn, console)
    return console
