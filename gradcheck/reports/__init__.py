"""Reports: each form is a function from a finished run to text; they read records only."""

from collections.abc import Callable

from gradcheck.model.run import Run
from gradcheck.reports.csv import render_csv
from gradcheck.reports.json import render_json, render_jsonl
from gradcheck.reports.markdown import render_markdown
from gradcheck.reports.picture import render_html, render_svg
from gradcheck.reports.text import render_text
from gradcheck.reports.view import View

#: Every form that `--format` and `--output` know.
FORMATS: dict[str, Callable[[Run, View], str]] = {
    "text": render_text,
    "json": render_json,
    "jsonl": render_jsonl,
    "csv": render_csv,
    "markdown": render_markdown,
    "svg": render_svg,
    "html": render_html,
}
