"""eval: a target against a reference device, forward."""

import math

import numpy as np

from gradcheck.model.case import Case
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Evidence, Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Bench, Device
from gradcheck.numerics.elements import unravel_ne
from gradcheck.numerics.forward_metrics import mismatched_specials, nmse
from gradcheck.numerics.gradient_metrics import asymmetry
from gradcheck.numerics.sampling import sample_inputs

_SHOWN = 5


def run(case: Case, bench: Bench) -> Outcome:
    """Compute a case on both devices from the same inputs and compare the whole output."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    values = sample_inputs(case, bench.settings.seed)
    got, overwrites = _output(bench.target, case, values)
    want, _ = _output(bench.reference(), case, values)
    limit = limits_for("eval", case, bench.settings)["nmse"]
    error = nmse(got, want)
    special = mismatched_specials(got, want)
    reasons = [f"something wrote behind the end of {name}" for name in overwrites]
    if special.any():
        reasons.append(f"{int(special.sum())} elements are NaN or infinite on one side only")
    elif not error <= limit:
        reasons.append(f"nmse {error:.3g} > {limit:.3g}")
    if not reasons and got.size == 0:
        return Outcome(Status.VACUOUS, "the output has no elements")
    return Outcome(
        status=Status.FAIL if reasons else Status.PASS,
        reason="; ".join(reasons),
        metrics=(Metric("nmse", error, limit),),
        evidence=_evidence(got, want),
        counts=(("elements", got.size), ("judged", got.size)),
    )


def _output(device: Device, case: Case, values: dict[str, Array]) -> tuple[Array, tuple[str, ...]]:
    program = device.open(case)
    try:
        program.load(values)
        return program.forward(), tuple(program.overwrites())
    finally:
        program.free()


def _evidence(got: Array, want: Array) -> tuple[Evidence, ...]:
    with np.errstate(invalid="ignore"):
        difference = np.abs(got - want).ravel()
    rank = np.where(mismatched_specials(got, want).ravel(), math.inf, np.nan_to_num(difference, nan=0.0))
    ratio = asymmetry(got, want).ravel()
    return tuple(
        Evidence(
            tensor="out",
            index=unravel_ne(int(at), got.shape),
            got=float(got.ravel()[at]),
            want=float(want.ravel()[at]),
            asymmetry=float(ratio[at]),
            uncertainty=0.0,
        )
        for at in np.argsort(-rank, kind="stable")[:_SHOWN]
        if rank[at] > 0
    )
