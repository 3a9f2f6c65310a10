"""Whether a case's gradients come out again: in a second run, in other memory, with other threads, accumulated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case
from gradcheck.model.errors import Aborted, NoRoom, Unsupported
from gradcheck.model.job import ALL, ALLOCATIONS, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import AllocatedProgram, Array, Bench, Program, Values
from gradcheck.modes.conduct import misbehaviour
from gradcheck.numerics.elements import unravel_ne
from gradcheck.numerics.gradient_metrics import rms
from gradcheck.numerics.sampling import generator, sample_cotangent

_F32_EPS = 2.0**-23
#: What the same arithmetic may differ by where it adds up in another order, in units of the size of a value and the
#: RMS together. n summands of random signs, added one by one, have an error of about sqrt(n) / 3 epsilons of their
#: sum, and this is that of 32,768 of them. On ggml's CPU the shipped cases differ by less than one epsilon.
_ORDER = 64 * _F32_EPS
#: A value in a type narrower than f32 may then be rounded to its other neighbour, in epsilons of that type.
_NEIGHBOUR = 2.0


@dataclass(frozen=True)
class Plain:
    """What a program in which every tensor has memory of its own was given, and what it gave."""

    values: Values
    y: Array
    cotangent: Array
    gradients: Mapping[str, Array | None]


@dataclass(frozen=True)
class Agreement:
    """Where gradients are others than the plain ones (faults), and where only their last bits are (notes)."""

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def onto(self, outcome: Outcome) -> Outcome:
        """An outcome with this added to it: a fault is a FAIL, whatever the plain gradients were."""
        outcome = replace(outcome, notes=(*outcome.notes, *self.notes))
        if not self.faults:
            return outcome
        before = (outcome.reason,) if outcome.status is Status.FAIL else ()
        return replace(outcome, status=Status.FAIL, reason="; ".join((*before, *self.faults)))


@dataclass(frozen=True)
class _Finding:
    """What is to be said of a subject (a tensor, a refusal) that came out in one way; `fault` or only a note."""

    fault: bool
    subject: str
    way: str
    text: str


@dataclass(frozen=True)
class Way:
    """A way to the same gradients; None where it is as for the plain ones."""

    alloc: str | None = None
    threads: int | None = None
    accumulate: bool = False
    again: bool = False

    def __str__(self) -> str:
        parts = (
            self.alloc and f"under {self.alloc}",
            self.threads and f"with {_threads(self.threads)}",
            self.accumulate and "in an accumulator that held a value",
            self.again and "in a second run",
        )
        return " ".join(part for part in parts if part)

    def plain(self, settings: Settings) -> str:
        """The same words for the plain gradients."""
        parts = (
            self.alloc and "memory of its own",
            self.threads and _threads(settings.threads),
            self.accumulate and "no accumulator",
        )
        return "in the first one" if self.again else "with " + " and ".join(part for part in parts if part)


def agree(case: Case, bench: Bench, program: Program, plain: Plain) -> Agreement:
    """Compare with the plain gradients those of a second run, and those of every other way that the run asks for.

    program: the one that gave the plain gradients, still open
    """
    comparison = _Comparison(plain, program.narrowest_eps, bench.settings)
    findings = comparison.of(Way(again=True), program.backward(plain.cotangent))
    for way in _ways(bench.settings, case.accumulate):
        try:
            findings += _compared(case, bench, way, comparison)
        except (Unsupported, NoRoom) as refusal:
            findings.append(_Finding(False, str(refusal), str(way), f"not compared {way}: {refusal}"))
        except Aborted as error:
            findings.append(_Finding(True, str(error), str(way), f"{way}: {error}"))
    return Agreement(faults=_sentences(findings, fault=True), notes=_sentences(findings, fault=False))


def _ways(settings: Settings, accumulate: bool) -> Iterator[Way]:
    allocations = ALLOCATIONS if settings.alloc == ALL else ("distinct", settings.alloc)
    for alloc in dict.fromkeys(allocations):
        for threads in (None, *settings.more_threads):
            for sums in (False, True) if accumulate else (False,):
                way = Way(None if alloc == "distinct" else alloc, threads, sums)
                if way != Way():
                    yield way


def _compared(case: Case, bench: Bench, way: Way, comparison: "_Comparison") -> list[_Finding]:
    device = bench.target if way.threads is None else bench.target_with(way.threads)
    program = device.open_allocated(case, way.alloc or "distinct", accumulate=way.accumulate)
    try:
        plain = comparison.plain
        program.load(plain.values)
        priors = _load_priors(case, program, bench.settings.seed, plain) if way.accumulate else {}
        y = program.forward()
        found = comparison.of(way, program.backward(plain.cotangent), y, priors)
        return found + [_Finding(True, fault, str(way), f"{way}: {fault}") for fault in misbehaviour(program)]
    finally:
        program.free()


def _load_priors(case: Case, program: AllocatedProgram, seed: int, plain: Plain) -> dict[str, Array]:
    """What the accumulators hold before: values as large as the gradients, so that neither drowns the other."""
    priors = {}
    for spec in case.params:
        rng = generator(seed, case.id, "prior", spec.name)
        gradient = plain.gradients[spec.name]
        size = (0.0 if gradient is None else rms(gradient)) or 1.0
        drawn = sample_cotangent("random", tuple(reversed(spec.ne)), rng) * size
        priors[spec.name] = drawn.astype(np.float32).astype(np.float64)
    program.load_accumulators(priors)
    return priors


@dataclass(frozen=True)
class _Comparison:
    """The plain gradients, and what others may differ from them by."""

    plain: Plain
    narrowest_eps: float
    settings: Settings

    def of(
        self,
        way: Way,
        gradients: Mapping[str, Array | None],
        y: Array | None = None,
        priors: Mapping[str, Array] | None = None,
    ) -> list[_Finding]:
        """Compare the gradients, and the output where it is given; priors are what accumulators held before."""
        priors = priors or {}
        findings = [] if y is None else self._one(way, "the output", y, self.plain.y, None)
        for name, want in self.plain.gradients.items():
            findings += self._one(way, f"the gradient of {name}", gradients[name], want, priors.get(name))
        return findings

    def _one(self, way: Way, what: str, got: Array | None, want: Array | None, prior: Array | None) -> list[_Finding]:
        """What is to be said of one tensor: a fault, bits that differ, or nothing."""
        if got is None and want is None:
            return []
        if want is None and prior is not None:
            want = np.zeros_like(prior)
        here, there = f"{what} {way}", way.plain(self.settings)
        if got is None or want is None or got.shape != want.shape:
            return [_Finding(True, what, str(way), f"{here} is {_shape(got)}, and {_shape(want)} {there}")]
        if prior is not None:
            got = got - prior
        excess = self._excess(got, want, 0.0 if prior is None else np.abs(prior))
        wrong = int(np.sum(excess > 1))
        if wrong:
            at = int(np.argmax(excess))
            index = ",".join(map(str, unravel_ne(at, want.shape)))
            values = f"{got.flat[at]:.6g} at [{index}], and {want.flat[at]:.6g} {there}"
            return [_Finding(True, what, str(way), f"{here} is {values} ({wrong} of {want.size} elements differ)")]
        bits = ~_same_bits(got, want)
        if prior is not None or not bits.any():
            return []
        most = float(np.max(np.abs(got[bits] - want[bits])))
        differing = f"{int(bits.sum())} of {want.size} elements of {what} differ in their bits, by {most:.2g} at most"
        return [_Finding(False, differing, str(way), f"{way} {differing}")]

    def _excess(self, got: Array, want: Array, prior: Array | float) -> Array:
        """How far values are apart, in units of what they may be; infinite where one alone is NaN or infinite."""
        narrow = _NEIGHBOUR * self.narrowest_eps if self.narrowest_eps > _F32_EPS else 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            most = (_ORDER + narrow) * (np.abs(want) + prior + rms(want))
            apart = np.abs(got - want)
            excess: Array = np.divide(apart, most, out=np.full(want.shape, np.inf), where=most > 0)
        excess[~np.isfinite(excess)] = np.inf
        excess[(got == want) | (np.isnan(got) & np.isnan(want))] = 0.0
        return excess


def _sentences(findings: list[_Finding], *, fault: bool) -> tuple[str, ...]:
    """A sentence for each subject: what was found first, and in which other ways it came out."""
    by_subject: dict[str, list[_Finding]] = {}
    for finding in findings:
        if finding.fault is fault:
            by_subject.setdefault(finding.subject, []).append(finding)
    return tuple(
        same[0].text + "".join(f", {'and ' * (also is same[-1])}{also.way} too" for also in same[1:])
        for same in by_subject.values()
    )


def _same_bits(a: Array, b: Array) -> NDArray[np.bool_]:
    # Values come from narrower types, so equal bits there are equal bits here. A NaN's bits mean nothing.
    same: NDArray[np.bool_] = np.ascontiguousarray(a).view(np.int64) == np.ascontiguousarray(b).view(np.int64)
    return same | (np.isnan(a) & np.isnan(b))


def _shape(tensor: Array | None) -> str:
    return "missing" if tensor is None else f"of the shape {list(reversed(tensor.shape))}"


def _threads(count: int) -> str:
    return f"{count} thread{'s'[: count != 1]}"
