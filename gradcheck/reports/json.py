"""The records themselves, for programs: a whole run, or a line for each result."""

import json

from gradcheck.model import codec
from gradcheck.model.run import SCHEMA_VERSION, Run
from gradcheck.reports.view import View


def render_json(run: Run, _view: View) -> str:
    """The whole run; `read_json` gives the same record back."""
    return json.dumps(codec.encode(run), indent=1, allow_nan=False) + "\n"


def render_jsonl(run: Run, _view: View) -> str:
    """A line for each result, in the order of the cases."""
    return "".join(json.dumps(codec.encode(result), allow_nan=False) + "\n" for result in run.results)


def read_json(text: str) -> Run:
    """The run that `render_json` wrote. Raises ValueError where the text is not such a run."""
    data = json.loads(text)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema version {version!r}; this gradcheck reads {SCHEMA_VERSION}")
    return codec.decode(Run, data)
