"""The exact confidence interval of a proportion."""

import math
from collections.abc import Callable

_TINY = 1e-300
#: The continued fraction converges in about the root of the larger argument; runs are counted in millions at most.
_MOST_TERMS = 100_000


def clopper_pearson(failed: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the rate behind `failed` of `runs` independent runs.

    Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404-413. Each end is the rate at which what was seen, or more (or less) of it,
    has a probability of (1 - confidence) / 2. It covers the rate at least as often as it says, whatever the rate is.

    Raises ValueError where the counts make no sense.
    """
    if not 0 <= failed <= runs:
        raise ValueError(f"{failed} of {runs} runs cannot have failed")
    if runs == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2.0
    # P(X >= k) at the rate p is I_p(k, n - k + 1), so both ends are quantiles of a beta distribution.
    low = _root(lambda p: incomplete_beta(failed, runs - failed + 1, p) - tail) if failed else 0.0
    high = _root(lambda p: incomplete_beta(failed + 1, runs - failed, p) - (1.0 - tail)) if failed < runs else 1.0
    return low, high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for positive a and b and x in [0, 1].

    Source: NIST Digital Library of Mathematical Functions, the continued fraction 8.17.22 and the symmetry 8.17.4.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    log_factor = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # On its own side of the mean the fraction converges fast.
    if x < (a + 1.0) / (a + b + 2.0):
        return math.exp(log_factor) / (a * _fraction(a, b, x))
    return 1.0 - math.exp(log_factor) / (b * _fraction(b, a, 1.0 - x))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1/(1 + d2/(1 + ...)) of DLMF 8.17.22, by the modified method of Lentz."""
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, _MOST_TERMS):
        m = term // 2
        if term % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _not_zero(1.0 + step * d)
        c = _not_zero(1.0 + step / c)
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _root(rising: Callable[[float], float]) -> float:
    """Where a function that rises on [0, 1] crosses zero, to the last bit, by bisection."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2.0) < high:
        if rising(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high
