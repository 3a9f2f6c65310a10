"""Numbers and foreign text as a reader sees them; records keep the raw ones."""

import math

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ("", "k", "M", "G", "T", "P")


def scientific(value: float, digits: int = 1) -> str:
    """3.2e-1: a value with `digits` decimals and a short exponent; 0, nan and inf as words."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def bound(value: float) -> str:
    """A limit without trailing zeros: 1e-4, 2.5e-3."""
    text = scientific(value, 6)
    mantissa, mark, exponent = text.partition("e")
    return mantissa.rstrip("0").rstrip(".") + mark + exponent if mark else text


def against_limit(value: float, limit: float) -> str:
    """`3.2e-1 > 1e-4` or `2.0e-6 <= 1e-4`, with as many digits as it takes to see which."""
    if math.isnan(value):
        return f"nan, not <= {bound(limit)}"
    shown = bound(limit)
    texts = (scientific(value, digits) for digits in (1, 3, 6))
    text = next((t for t in texts if (float(t) > float(shown)) == (value > limit)), f"{value!r}")
    return f"{text} {'>' if value > limit else '<='} {shown}"


def duration(seconds: float) -> str:
    """An elapsed time: 0.03 s, 12.3 s, 2m 03s, 1h 02m."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def measured_time(seconds: float) -> str:
    """A measured time with three digits: 12.3 us."""
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:g} s"
    scale, unit = next((t for t in _TIMES if abs(seconds) >= t[0] * 0.9995), _TIMES[-1])
    return f"{_three_digits(seconds / scale)} {unit}"


def rate(value: float, unit: str) -> str:
    """A rate with three digits and a decimal prefix: 12.3 GB/s."""
    power = 0
    while abs(value) >= 999.5 and math.isfinite(value) and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    return f"{_three_digits(value)} {_PREFIXES[power]}{unit}"


def memory(size: int) -> str:
    """A size in bytes as GiB or MiB; "-" where unknown."""
    if size <= 0:
        return "-"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def plural(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def one_line(text: str) -> str:
    """Text of unknown origin on one line, without anything that a terminal would obey."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Text with its control characters shown as escapes, so that a log cannot move the cursor."""
    text = text.expandtabs(4)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def _three_digits(value: float) -> str:
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f}"
