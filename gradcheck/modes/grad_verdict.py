"""From compared gradients to a verdict, with the evidence for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.result import Evidence, Metric, Outcome
from gradcheck.model.status import Status
from gradcheck.modes.grad_diagnosis import AtHand, diagnose_case
from gradcheck.numerics.elements import unravel_ne
from gradcheck.numerics.gradient_metrics import (
    Judged,
    cosine,
    mean_asymmetry,
    relative_l2,
    relative_uncertainty,
)

#: Elements shown for a bad case, worst first.
_SHOWN = 5


@dataclass(frozen=True)
class ParamGradient:
    """The comparison for one param and cotangent at its chosen elements (flat, C order of `shape`).

    method: how the numeric gradient was found; for "directional" the elements are numbers of directions
    cotangent: which of the cotangents it belongs to
    gradient_shape: the shape of the gradient that ggml made; None where it made none
    finite_everywhere: whether all of the gradient is finite, judged elements or not
    """

    name: str
    shape: tuple[int, ...]
    elements: NDArray[np.int64]
    judged: Judged
    gradient_shape: tuple[int, ...] | None
    evaluations: int
    finite_everywhere: bool
    method: str = "dense"
    cotangent: int = 0

    @property
    def missing(self) -> bool:
        """Whether ggml made no gradient at all."""
        return self.gradient_shape is None


def judge(
    params: Sequence[ParamGradient], limits: Mapping[str, float], *, zero: bool, at_hand: AtHand | None = None
) -> Outcome:
    """The verdict of docs/design.md, in the order in which a reader needs its parts.

    zero: the case says that every gradient is zero by definition
    at_hand: tensors that a wrong gradient may be made of
    """
    metrics = _metrics(params, limits)
    found = {metric.name: metric.beyond for metric in metrics}
    failures = [
        *dict.fromkeys(reason for param in params for reason in _broken(param, zero)),
        *_beyond(found, limits),
    ]
    vacuous = _vacuous(params, found, limits, zero)
    if failures:
        status, reason = Status.FAIL, "; ".join(failures)
    elif vacuous:
        status, reason = Status.VACUOUS, "; ".join(vacuous)
    else:
        status, reason = Status.PASS, ""
    return Outcome(
        status,
        reason,
        metrics=metrics,
        evidence=_evidence(params),
        counts=_counts(params),
        diagnosis=diagnose_case(params, limits, at_hand) if failures else (),
        methods=tuple(dict.fromkeys((param.name, param.method) for param in params)),
    )


def _metrics(params: Sequence[ParamGradient], limits: Mapping[str, float]) -> tuple[Metric, ...]:
    judged = [param.judged for param in params]
    maa, maa_uncertainty = mean_asymmetry(judged)
    l2 = max((_l2(j, limits["rel_l2"]) for j in judged), key=lambda m: math.inf if math.isnan(m.value) else m.beyond)
    return (
        Metric("maa", maa, limits["maa"], uncertainty=maa_uncertainty),
        # NumPy's extrema keep a NaN, which Python's can lose.
        Metric("element", float(np.max([_worst_excess(j) for j in judged])), limits["element"]),
        l2,
        Metric("kinks", _share(sum(int(j.kink.sum()) for j in judged), judged), limits["kinks"]),
        Metric("cosine", min((cosine(j) for j in judged if not j.lost), default=math.nan)),
    )


def _worst_excess(judged: Judged) -> float:
    return float(np.max(judged.excess)) if judged.excess.size else 0.0


def _l2(judged: Judged, limit: float) -> Metric:
    return Metric("rel_l2", relative_l2(judged), limit, uncertainty=relative_uncertainty(judged))


def _share(count: int, judged: list[Judged]) -> float:
    total = sum(j.numeric.size for j in judged)
    return count / total if total else 0.0


def _broken(param: ParamGradient, zero: bool) -> list[str]:
    """What no limit can excuse."""
    reasons = []
    if param.missing and not zero and bool(np.any(param.judged.numeric != 0)):
        reasons.append(f"ggml made no gradient for {param.name}, and it is not zero")
    if param.gradient_shape is not None and param.gradient_shape != param.shape:
        got, want = (list(reversed(shape)) for shape in (param.gradient_shape, param.shape))
        reasons.append(f"the gradient of {param.name} has the shape {got}, not {want}")
    if not np.isfinite(param.judged.numeric).all():
        reasons.append(f"the numeric gradient of {param.name} is not finite")
    if not param.finite_everywhere:
        reasons.append(f"the gradient of {param.name} is not finite")
    if zero and bool(np.any(param.judged.numeric[~param.judged.kink] != 0)):
        reasons.append(f"the case says that the gradient of {param.name} is zero, and it is not")
    return reasons


def _beyond(found: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    reasons = []
    for name in ("maa", "element", "rel_l2"):
        value = found[name]
        # No relative element at all makes the MAA NaN: that is for `_vacuous` to tell, not a wrong gradient.
        if value > limits[name] or (math.isnan(value) and name != "maa"):
            reasons.append(f"{name} {value:.3g} > {limits[name]:.3g}")
    return reasons


def _vacuous(
    params: Sequence[ParamGradient], found: Mapping[str, float], limits: Mapping[str, float], zero: bool
) -> list[str]:
    reasons = []
    if found["kinks"] > limits["kinks"]:
        reasons.append(f"no numeric gradient exists at {found['kinks']:.1%} of the elements")
    for name in dict.fromkeys(param.name for param in params):
        mine = [param.judged for param in params if param.name == name]
        if any(judged.numeric.size and judged.kink.all() for judged in mine):
            reasons.append(f"no element of {name} could be judged")
        # With one of several cotangents a gradient may well vanish.
        elif not zero and all(_vanishes(judged) for judged in mine):
            reasons.append(f"the gradient of {name} is zero everywhere")
        elif not zero and all(judged.lost or _vanishes(judged) for judged in mine):
            reasons.append(f"the gradient of {name} is lost in the rounding of the output")
    if not any(param.judged.numeric.size for param in params):
        reasons.append("the params have no elements")
    return reasons


def _vanishes(judged: Judged) -> bool:
    left = ~judged.kink
    return bool(left.any() and not judged.numeric[left].any() and not judged.backprop.any())


def _counts(params: Sequence[ParamGradient]) -> tuple[tuple[str, int], ...]:
    """Elements are counted once, whatever the number of cotangents, by what the first one says of them."""
    first = [param for param in params if param.cotangent == 0]
    elements = [param for param in first if param.method != "directional"]
    shapes = {param.name: param.shape for param in params}
    counts = [
        ("elements", sum(math.prod(shape) for shape in shapes.values())),
        ("judged", sum(int((~p.judged.kink).sum()) for p in elements)),
        ("kink", sum(int(p.judged.kink.sum()) for p in elements)),
        ("flat", sum(int(p.judged.flat.sum()) for p in elements)),
        ("small", sum(int(p.judged.small.sum()) for p in elements)),
        ("directions", sum(p.elements.size for p in first if p.method == "directional")),
        ("cotangents", 1 + max((p.cotangent for p in params), default=0)),
        ("evaluations", sum(p.evaluations for p in first)),
    ]
    return tuple((name, count) for name, count in counts if count or name not in ("flat", "directions"))


def _evidence(params: Sequence[ParamGradient]) -> tuple[Evidence, ...]:
    entries = []
    for param in params:
        judged = param.judged
        # A kink is shown only where backprop is beyond what any slope there could be.
        rank = np.where(judged.kink & (judged.excess == 0), -1.0, judged.excess)
        rank = np.where(np.isnan(rank) | judged.not_finite, np.inf, rank)
        for at in np.argsort(-rank, kind="stable")[:_SHOWN]:
            if rank[at] >= 0:
                entries.append((float(rank[at]), _element(param, int(at))))
    entries.sort(key=lambda entry: -entry[0])
    return tuple(evidence for _, evidence in entries[:_SHOWN])


def _element(param: ParamGradient, at: int) -> Evidence:
    judged = param.judged
    along = param.method == "directional"
    of = f" (cotangent {param.cotangent + 1})" if param.cotangent else ""
    return Evidence(
        tensor=f"{param.name} along direction{of}" if along else param.name + of,
        index=(at,) if along else unravel_ne(int(param.elements[at]), param.shape),
        got=math.nan if param.missing else float(judged.backprop[at]),
        want=float(judged.numeric[at]),
        asymmetry=float(judged.asymmetry[at]),
        uncertainty=float(judged.uncertainty[at]),
    )
