"""eval: a target against a reference, forward and, if wanted, backward."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case
from gradcheck.model.limits import limits_for
from gradcheck.model.result import Evidence, Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Bench, Device
from gradcheck.modes.conduct import misbehaviour
from gradcheck.numerics.elements import unravel_ne
from gradcheck.numerics.forward_metrics import element_error, mismatched_specials, nmse
from gradcheck.numerics.gradient_metrics import asymmetry
from gradcheck.numerics.sampling import generator, sample_cotangent, sample_inputs

_SHOWN = 5
#: The bound of one element in units of the root of the bound of the mean square: a tail of ten deviations.
_ELEMENT_SHARE = 10.0


def run(case: Case, bench: Bench) -> Outcome:
    """Compute a case on both devices from the same inputs and compare every tensor that comes out."""
    if case.skip:
        return Outcome(Status.SKIP, case.skip)
    got = _compute(bench.target, case, bench, bench.settings.repeat)
    want = _compute(bench.reference(), case, bench, 1)
    limits = limits_for("eval", case, bench.settings)
    compared = [_compare(name, got.tensors[name], want.tensors[name]) for name in got.tensors]
    reasons = [*got.faults, *(reason for one in compared for reason in one.reasons(limits))]
    elements = sum(one.got.size for one in compared)
    if not reasons and elements == 0:
        return Outcome(Status.VACUOUS, "the output has no elements")
    return Outcome(
        status=Status.FAIL if reasons else Status.PASS,
        reason="; ".join(reasons),
        metrics=(
            Metric("nmse", float(np.max([one.nmse for one in compared])), limits["nmse"]),
            Metric("element", float(np.max([one.worst for one in compared])), _element_limit(limits)),
        ),
        evidence=tuple(evidence for one in compared for evidence in one.evidence())[:_SHOWN],
        counts=(("elements", elements), ("judged", elements)),
    )


@dataclass(frozen=True)
class _Computed:
    """What a device made of a case, and what it did wrong on the way."""

    tensors: dict[str, Array]
    faults: tuple[str, ...]


def _compute(device: Device, case: Case, bench: Bench, times: int) -> _Computed:
    settings = bench.settings
    program = device.open(case, backward=settings.backward)
    try:
        program.load(sample_inputs(case, settings.seed))
        out = program.forward()
        faults = []
        for number in range(2, times + 1):
            differing = int(np.sum(~_same_bits(program.forward(), out)))
            if differing:
                faults.append(f"run {number} differs from run 1 in {differing} elements")
        tensors: dict[str, Array] = {"out": out}
        if settings.backward:
            v = sample_cotangent(settings.cotangent, out.shape, generator(settings.seed, case.id, "cotangent"))
            tensors |= {f"grad({name})": g for name, g in program.backward(v).items() if g is not None}
        return _Computed(tensors, (*faults, *misbehaviour(program)))
    finally:
        program.free()


def _same_bits(a: Array, b: Array) -> NDArray[np.bool_]:
    # Values come from narrower types, so equal bits there are equal bits here, -0 and NaN included.
    same: NDArray[np.bool_] = np.ascontiguousarray(a).view(np.int64) == np.ascontiguousarray(b).view(np.int64)
    return same


@dataclass(frozen=True)
class _Compared:
    """One tensor of both sides."""

    name: str
    got: Array
    want: Array
    nmse: float
    errors: Array

    @property
    def worst(self) -> float:
        """The largest error of an element, NaN if any is."""
        return float(np.max(self.errors)) if self.errors.size else 0.0

    def reasons(self, limits: Mapping[str, float]) -> list[str]:
        """What is wrong with this tensor."""
        special = int(mismatched_specials(self.got, self.want).sum())
        if special:
            return [f"{special} elements of {self.name} are NaN or infinite on one side only"]
        found = []
        if not self.nmse <= limits["nmse"]:
            found.append(f"nmse of {self.name} {self.nmse:.3g} > {limits['nmse']:.3g}")
        if not self.worst <= _element_limit(limits):
            found.append(f"element of {self.name} {self.worst:.3g} > {_element_limit(limits):.3g}")
        return found

    def evidence(self) -> list[Evidence]:
        """The worst elements, worst first."""
        special = mismatched_specials(self.got, self.want).ravel()
        rank = np.where(special, math.inf, np.nan_to_num(self.errors.ravel(), nan=0.0, posinf=math.inf))
        ratio = asymmetry(self.got, self.want).ravel()
        return [
            Evidence(
                tensor=self.name,
                index=unravel_ne(int(at), self.got.shape),
                got=float(self.got.ravel()[at]),
                want=float(self.want.ravel()[at]),
                asymmetry=float(ratio[at]),
                uncertainty=0.0,
            )
            for at in np.argsort(-rank, kind="stable")[:_SHOWN]
            if rank[at] > 0
        ]


def _compare(name: str, got: Array, want: Array) -> _Compared:
    return _Compared(name, got, want, nmse(got, want), element_error(got, want))


def _element_limit(limits: Mapping[str, float]) -> float:
    return limits["element"] or _ELEMENT_SHARE * math.sqrt(limits["nmse"])
