"""Where ggml's scheduler ran things: a phrase for a case, a line for a target."""

from collections import Counter
from collections.abc import Iterator

from gradcheck.model.result import Placement, Result
from gradcheck.model.run import Run
from gradcheck.reports.wording import plural


def placement_text(placement: Placement) -> str:
    """`MUL_MAT on BLAS; ADD, SQR on CPU; 2 splits`: each op once for each device that ran it."""
    parts = []
    for device in placement.devices:
        ops = dict.fromkeys(op for op, where in placement.nodes if where == device)
        parts.append(f"{', '.join(ops)} on {device}")
    if placement.splits > 1:
        parts.append(plural(placement.splits, "split"))
    return "; ".join(parts) or "nothing is computed"


def placement_lines(run: Run) -> Iterator[str]:
    """`placement: 120 cases on BLAS, 3,400 on CPU, 12 on both` for each target of a run with the scheduler."""
    for target in run.info.targets if run.info.settings.sched else ():
        results = [result for result in run.results if result.target == target and result.status.ran]
        whose = f" of {target}" if len(run.info.targets) > 1 else ""
        if results:
            yield f"placement{whose}: {_counts(results, target)}"


def _counts(results: list[Result], target: str) -> str:
    places = Counter(_place(result.outcome.placement) for result in results)
    order = sorted(places, key=lambda p: (p != f"on {target}", not p.startswith("on "), p == "on both", p))
    first, *others = order
    noun = "case" if places[first] == 1 else "cases"
    return ", ".join([f"{places[first]:,} {noun} {first}", *(f"{places[other]:,} {other}" for other in others)])


def _place(placement: Placement | None) -> str:
    if placement is None:
        return "unknown"
    devices = placement.devices
    if not devices:
        return "without anything to compute"
    return f"on {devices[0]}" if len(devices) == 1 else "on both"
