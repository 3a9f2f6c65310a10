"""How far an output is from its reference: the numbers behind the verdict of `eval`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Elements that are looked at in one go: what is made on the way stays in the cache.
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class Difference:
    """What two arrays of one shape differ by.

    nmse: mean((got - want)^2) / mean(want^2) as in the C++ tool, without the elements that are the same infinity on
        both sides; NaN where any other is not finite
    worst: the largest error of an element: abs(got - want) / (abs(want) + rms(want)), inf where one side is not finite
    places: the flat indices of the elements with the largest errors, worst first, of those that have one
    one_sided: elements that are NaN or infinite on one side only, or infinite with another sign
    nan: elements that are NaN on both sides
    """

    nmse: float
    worst: float
    places: tuple[int, ...]
    one_sided: int
    nan: int


@dataclass(slots=True)
class _Sums:
    """Over the elements that are finite: of (got - want)^2, of want^2, and how many of `want` there are."""

    error: float = 0.0
    size: float = 0.0
    finite: int = 0
    one_sided: int = 0
    nan: int = 0

    def add(self, got: Array, want: Array) -> None:
        error = got - want
        squares, size = float(np.dot(error, error)), float(np.dot(want, want))
        if math.isfinite(squares) and math.isfinite(size):
            self.error, self.size, self.finite = self.error + squares, self.size + size, self.finite + want.size
            return
        nan = np.isnan(got) & np.isnan(want)
        whole = np.isfinite(want)
        special = ~np.isfinite(got) | ~whole
        self.error += float(np.sum(error[~special] ** 2))
        self.size += float(np.sum(want[whole] ** 2))
        self.finite += int(whole.sum())
        self.nan += int(nan.sum())
        self.one_sided += int((special & ~nan & (got != want)).sum())


def difference(got: Array, want: Array, shown: int) -> Difference:
    """Measure two arrays of one shape; `shown` is how many places are told at most."""
    got, want = got.reshape(-1), want.reshape(-1)
    if np.array_equal(got, want):
        return Difference(0.0, 0.0, (), 0, 0)
    sums = _Sums()
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for _, g, w in _chunks(got, want):
            sums.add(g, w)
        rms = math.sqrt(sums.size / sums.finite) if sums.finite else 0.0
        most, worst = 0.0, list[tuple[float, int]]()
        for start, g, w in _chunks(got, want):
            errors = element_error(g, w, rms)
            largest = float(np.max(errors))
            most = max(most, largest)
            if len(worst) == shown and (not shown or largest <= worst[-1][0]):
                continue
            found = [(float(errors[at]), start + at) for at in _largest(errors, shown)]
            worst = sorted([*worst, *found], key=lambda entry: (-entry[0], entry[1]))[:shown]
    return Difference(
        nmse=_nmse(sums),
        worst=most,
        places=tuple(place for _, place in worst),
        one_sided=sums.one_sided,
        nan=sums.nan,
    )


def element_error(got: Array, want: Array, rms: float) -> Array:
    """abs(got - want) / (abs(want) + rms): 0 where both are the same, NaN too, inf where one is not finite."""
    error = np.abs(got - want)
    scale = np.abs(want) + rms
    found: Array = error / scale
    if not math.isfinite(float(np.sum(found))):  # something is not finite, or all of `want` is zero
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        found[np.isnan(found) | ~np.isfinite(want)] = np.inf
        found[same] = 0.0
    return found


def _nmse(sums: _Sums) -> float:
    if sums.one_sided or sums.nan:
        return math.nan
    if sums.error == 0:
        return 0.0
    return sums.error / sums.size if sums.size else math.inf


def _largest(errors: Array, count: int) -> list[int]:
    """Where the largest errors stand, at most `count`, without zeros; of equal ones the first."""
    if not count or not float(np.max(errors)) > 0:
        return []
    bound = float(np.partition(errors, -count)[-count]) if errors.size > count else 0.0
    above = np.flatnonzero(errors > bound)
    equal = np.flatnonzero(errors == bound)[: count - above.size] if bound > 0 else above[:0]
    return [*map(int, above), *map(int, equal)]


def _chunks(got: Array, want: Array) -> Iterator[tuple[int, Array, Array]]:
    for start in range(0, got.size, _CHUNK):
        yield start, got[start : start + _CHUNK], want[start : start + _CHUNK]
