"""The table that test-backend-ops prints with `--output csv`, column by column, for scripts that read it.

A script that makes a page of a backend's support reads rows whose `test_mode` is `support`, and of these
`error_message`, which is `yes` or `no`. What gradcheck knows beyond it stands in rows of another test_mode.
"""

import csv
from collections.abc import Iterator
from io import StringIO

from gradcheck.model.result import Result
from gradcheck.model.run import Run
from gradcheck.model.status import Status
from gradcheck.reports.view import View
from gradcheck.reports.wording import one_line

#: What test-backend-ops prints as CSV, in its order.
SUPPORT_COLUMNS = (
    "backend_name", "op_name", "op_params", "test_mode", "supported", "error_message", "backend_reg_name",
)  # fmt: skip
#: The whole record of a test as test-backend-ops keeps it, in the order of its `--output sql`.
COLUMNS = (
    "test_time", "build_commit", "backend_name", "op_name", "op_params", "test_mode", "supported", "passed",
    "error_message", "time_us", "flops", "bandwidth_gb_s", "memory_kb", "n_runs", "device_description",
    "backend_reg_name",
)  # fmt: skip
#: What test-backend-ops calls our modes, where it has another name.
_MODES = {"eval": "test"}
_GOOD = (Status.PASS, Status.XFAIL)

Row = dict[str, str]


def render_csv(run: Run, _view: View) -> str:
    """A row for each result; of support, a second one with test_mode `support_backward` where it was asked for."""
    support = run.info.mode == "support"
    text = StringIO()
    writer = csv.DictWriter(
        text,
        SUPPORT_COLUMNS if support else COLUMNS,
        extrasaction="ignore",
        quoting=csv.QUOTE_ALL,
        lineterminator="\n",
    )
    writer.writeheader()
    for result in run.results:
        writer.writerows(_support_rows(run, result) if support else (_row(run, result),))
    return text.getvalue()


def _support_rows(run: Run, result: Result) -> Iterator[Row]:
    row = _row(run, result)
    # A case that ended otherwise gave no answer at all, and counts as no.
    answers = {"forward": 0, **dict(result.outcome.counts)}
    for direction, mode in (("forward", "support"), ("backward", "support_backward")):
        if direction in answers:
            yes = bool(answers[direction])
            yield {**row, "test_mode": mode, "supported": str(int(yes)), "error_message": "yes" if yes else "no"}


def _row(run: Run, result: Result) -> Row:
    """Every column; times in microseconds, GB and KB in powers of 1024, as test-backend-ops has them."""
    info, outcome = run.info, result.outcome
    device = next((device for device in info.library.devices if device.name == result.target), None)
    metrics = {metric.name: metric.value for metric in outcome.metrics}
    counts = dict(outcome.counts)
    return {
        "test_time": info.started.replace("+00:00", "Z"),
        "build_commit": info.library.ggml_commit,
        "backend_name": result.target,
        "op_name": result.op,
        "op_params": "".join(result.case_id[len(result.op) + 1 :].rsplit(")", 1)),
        "test_mode": _MODES.get(result.mode, result.mode),
        "supported": str(int(result.status is not Status.UNSUPPORTED)),
        "passed": str(int(result.status in _GOOD)),
        "error_message": one_line(outcome.reason),
        "time_us": f"{metrics.get('time', 0.0) * 1e6:.6f}",
        "flops": f"{metrics.get('flops', 0.0):.6f}",
        "bandwidth_gb_s": f"{metrics.get('bandwidth', 0.0) / 2**30:.6f}",
        "memory_kb": str(counts.get("bytes", 0) // 1024),
        "n_runs": str(counts.get("runs", 0)),
        "device_description": device.description if device else "",
        "backend_reg_name": device.registry if device else "",
    }
