"""Rotary position embedding in all of ggml's modes, with YaRN."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, over

NORMAL, NEOX, MROPE, VISION, IMROPE = 0, 2, 8, 24, 40
_MODES = {
    "ROPE_TYPE_NORMAL": NORMAL,
    "ROPE_TYPE_NEOX": NEOX,
    "ROPE_TYPE_MROPE": MROPE,
    "ROPE_TYPE_VISION": VISION,
    "ROPE_TYPE_IMROPE": IMROPE,
}
_SECTIONED = (MROPE, VISION, IMROPE)


@dataclass(frozen=True)
class Rope:
    """What turns an element: the angle of pair p at position t is t freq_base^(-2p / n_dims) / factor[p].

    mode: which elements are a pair, and which of four positions a pair takes (`sections`)
    freq_scale, ext_factor, attn_factor, beta_fast, beta_slow, n_ctx_orig: YaRN, see `_yarn`
    """

    n_dims: int
    mode: int
    n_ctx_orig: int = 0
    freq_base: float = 10000.0
    freq_scale: float = 1.0
    ext_factor: float = 0.0
    attn_factor: float = 1.0
    beta_fast: float = 0.0
    beta_slow: float = 0.0
    sections: tuple[int, ...] = (0, 0, 0, 0)

    def pairs(self, row: int) -> int:
        """How many pairs of a row are turned; what is left of it is copied."""
        return row // 2 if self.mode == VISION else self.n_dims // 2

    def rotate(self, x: Array, positions: Array, factors: Array | None, sign: float = 1.0) -> Array:
        """Each pair (x0, x1) becomes (x0 cos - x1 sin, x0 sin + x1 cos); a sign of -1 turns it back.

        x: [ne3, tokens, heads, ne0]
        A pair is two neighbours in normal mode, and two elements half of the turned part apart in the others.
        """
        count = self.pairs(x.shape[-1])
        angle, size = self._yarn(self._angles(positions.ravel(), x.shape[1], count, factors))
        cos, sin = size * np.cos(angle)[:, None, :], sign * size * np.sin(angle)[:, None, :]
        near = self.mode == NORMAL
        first = slice(0, 2 * count, 2) if near else slice(0, count)
        second = slice(1, 2 * count, 2) if near else slice(count, 2 * count)
        out = np.empty(x.shape)
        for into, one, other in ((first, cos, -sin), (second, sin, cos)):
            np.multiply(x[..., first], one, out=out[..., into])
            out[..., into] += x[..., second] * other
        out[..., 2 * count :] = x[..., 2 * count :]
        return out

    def _angles(self, positions: Array, tokens: int, count: int, factors: Array | None) -> Array:
        channel, exponent = self._channels(count)
        by_channel = positions.reshape(-1, tokens)
        angle = by_channel[channel].T * self.freq_base ** (-2.0 * exponent / self.n_dims)
        out: Array = angle if factors is None else angle / factors.ravel()[:count]
        return out

    def _channels(self, count: int) -> tuple[Any, Any]:
        """Which of the four positions (time, height, width, extra) each pair takes, and its exponent."""
        pair = np.arange(count)
        if self.mode not in _SECTIONED:
            return np.zeros_like(pair), pair
        starts = np.cumsum((0, *self.sections[:3]))
        sector = pair % sum(self.sections)
        if self.mode == IMROPE:
            third = sector % 3
            taken = sector < 3 * np.array(self.sections)[third]
            return np.where(taken, third, 3), pair
        channel = np.searchsorted(starts, sector, side="right") - 1
        return channel, sector - starts[channel] if self.mode == VISION else pair

    def _yarn(self, angle: Array) -> tuple[Array, float]:
        """The angles after YaRN, and the factor on both elements of a pair.

        With m[p] = ext_factor (1 - clip((p - low) / max(high - low, 0.001), 0, 1)) an angle is
        angle (freq_scale (1 - m) + m). low and high are the pairs that turn beta_fast and beta_slow times over
        n_ctx_orig positions.
        """
        if self.ext_factor == 0:
            return self.freq_scale * angle, self.attn_factor
        low = max(0.0, np.floor(self._turning(self.beta_fast)))
        high = min(self.n_dims - 1.0, np.ceil(self._turning(self.beta_slow)))
        ramp = 1 - np.clip((np.arange(angle.shape[-1]) - low) / max(0.001, high - low), 0, 1)
        mix = self.ext_factor * ramp
        size = self.attn_factor * (1 + 0.1 * math.log(1 / self.freq_scale))
        return angle * (self.freq_scale * (1 - mix) + mix), size

    def _turning(self, turns: float) -> float:
        """The pair that turns so many times over n_ctx_orig positions, as a real number."""
        with np.errstate(divide="ignore"):
            logarithm = np.log(np.float64(self.n_ctx_orig) / (turns * 2 * math.pi))
        return float(self.n_dims * logarithm / (2 * math.log(self.freq_base)))


def _function(make: Callable[..., Tensor], sign: float = 1.0) -> Callable[..., Tensor]:
    def rope_ext(
        a: Tensor, positions: Tensor, factors: Tensor | int | None, n_dims: int, mode: int | str, *numbers: float
    ) -> Tensor:
        return _made(make, sign, a, positions, factors, n_dims, mode, (0, 0, 0, 0), numbers)

    return rope_ext


def _multi(make: Callable[..., Tensor], sign: float = 1.0) -> Callable[..., Tensor]:
    def rope_multi(
        a: Tensor,
        positions: Tensor,
        factors: Tensor | int | None,
        n_dims: int,
        sections: tuple[int, ...],
        mode: int | str,
        *numbers: float,
    ) -> Tensor:
        return _made(make, sign, a, positions, factors, n_dims, mode, sections, numbers)

    return rope_multi


def _custom(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rope_custom(a: Tensor, positions: Tensor, n_dims: int, mode: int | str, *numbers: float) -> Tensor:
        return _made(make, 1.0, a, positions, None, n_dims, mode, (0, 0, 0, 0), numbers)

    return rope_custom


def _plain(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rope(a: Tensor, positions: Tensor, n_dims: int, mode: int | str) -> Tensor:
        return _made(make, 1.0, a, positions, None, n_dims, mode, (0, 0, 0, 0), (0, 10000.0, 1.0, 0.0, 1.0, 0.0, 0.0))

    return rope


def _made(
    make: Callable[..., Tensor],
    sign: float,
    a: Tensor,
    positions: Tensor,
    factors: Tensor | int | None,
    n_dims: int,
    mode: int | str,
    sections: tuple[int, ...],
    numbers: tuple[float, ...],
) -> Tensor:
    number = _MODES.get(mode, -1) if isinstance(mode, str) else mode
    if number not in _MODES.values():
        raise InvalidCase(f"rope: there is no mode {mode!r}")
    if len(numbers) != 7:
        raise InvalidCase(f"rope: {len(numbers)} numbers from n_ctx_orig to beta_slow; there are 7")
    rope = Rope(n_dims, number, int(numbers[0]), *numbers[1:], sections=(*sections, 0, 0, 0, 0)[:4])
    multi = number in _SECTIONED
    demand(2 * rope.pairs(a.ne[0]) <= a.ne[0], f"rope: {n_dims} dimensions of {a}")
    demand(not multi or sum(rope.sections) > 0, "rope: no sections")
    demand(positions.elements == a.ne[2] * (4 if multi else 1), f"rope: {positions} for the {a.ne[2]} tokens of {a}")
    given = factors if isinstance(factors, Tensor) else None

    def rule(x: Array, p: Array, f: Array | None) -> Array:
        return rope.rotate(x, p, f, sign)

    return make(a, rule, positions, given)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rope": _plain(like),
    "rope_inplace": _plain(over),
    "rope_custom": _custom(like),
    "rope_custom_inplace": _custom(over),
    "rope_ext": _function(like),
    "rope_ext_inplace": _function(over),
    "rope_ext_back": _function(like, -1.0),
    "rope_multi": _multi(like),
    "rope_multi_inplace": _multi(over),
    "rope_multi_back": _multi(like, -1.0),
}
