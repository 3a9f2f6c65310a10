"""Names of factors: a simple fraction, the length of an axis, a root."""

import math
from collections.abc import Iterator, Sequence

from gradcheck.numerics.diagnosis.compared import Compared, Tensor

#: Fractions up to this denominator are called by their name.
_DENOMINATORS = 12
#: Numbers up to this one are integers for a reader; a larger one is what it is by its digits.
_LARGEST = 4096
#: A name is given where the error is below this share of the distance between such numbers.
_TELLING = 0.02
#: The shortest axis whose root is considered.
_ROOTS = 16
_CONSTANTS = {
    "sqrt(2)": math.sqrt(2.0),
    "1/sqrt(2)": math.sqrt(0.5),
    "ln(2)": math.log(2.0),
    "1/ln(2)": 1.0 / math.log(2.0),
}


def simple(value: float, error: float) -> str:
    """The integer, small fraction or root that a number is within its error, "" for none.

    An error that many such numbers would fit tells none of them.
    """
    size, sign = abs(value), "-" if value < 0 else ""
    for denominator in range(1, _DENOMINATORS + 1):
        numerator = round(size * denominator)
        if (
            not 0 < numerator <= (_LARGEST if denominator == 1 else _DENOMINATORS)
            or math.gcd(numerator, denominator) > 1
        ):
            continue
        if abs(size - numerator / denominator) <= error <= _TELLING / denominator**2:
            return sign + _written(numerator, denominator)
    inverse = round(1.0 / size) if size * _LARGEST > 1.0 else 0
    if inverse > 1 and abs(size - 1.0 / inverse) <= error <= _TELLING * size**2:
        return f"{sign}1/{inverse}"
    return next((sign + name for name, root in _CONSTANTS.items() if abs(size - root) <= error <= _TELLING), "")


def is_plain(name: str) -> bool:
    """Whether a simple number is one that errors make often: it is no chance that it came out."""
    return name.lstrip("-").isdigit() or name.startswith(("1/", "-1/")) or name.endswith(("/3", ".5", ".25", ".75"))


def _written(numerator: int, denominator: int) -> str:
    """1/8, 2/3, 1.5: a decimal where it has three digits at most."""
    if denominator == 1:
        return str(numerator)
    ends = 1000 % denominator == 0 and numerator > 1
    return f"{numerator / denominator:g}" if ends else f"{numerator}/{denominator}"


def decimal(value: float, error: float) -> str:
    """A number with as many digits as its error leaves, 2 at least and 5 at most."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 5 if error <= 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(error))
    return f"{value:.{min(5, max(2, digits))}g}"


def length(value: float, error: float, param: Compared, tensors: Sequence[Tensor], others: Sequence[Compared]) -> str:
    """Which length of the case a factor is made of: "1/ne[0]", "ne[1] of b"..., "" for none.

    Roots are those of lengths from 16 on: others are small numbers, which say nothing.
    """
    lengths = list(_lengths(param, tensors, others))
    forms = [(form, made) for name, n in lengths for form, made in ((name, float(n)), (f"1/{name}", 1.0 / n))]
    forms += [
        (form, made)
        for name, n in lengths
        if n >= _ROOTS
        for form, made in ((f"sqrt({name})", math.sqrt(n)), (f"1/sqrt({name})", 1.0 / math.sqrt(n)))
    ]
    return next((form for form, made in forms if abs(abs(value) - made) <= error), "")


def _lengths(param: Compared, tensors: Sequence[Tensor], others: Sequence[Compared]) -> Iterator[tuple[str, int]]:
    """Lengths above 1 with their names, those of the param itself first."""
    shapes = [("", param.shape), *((f" of {other.name}", other.shape) for other in others)]
    shapes += [(f" of {tensor.words}", tensor.values.shape) for tensor in tensors]
    for owner, shape in shapes:
        for at, size in enumerate(reversed(shape)):
            if size > 1:
                yield f"ne[{at}]{owner}", size
    size = math.prod(param.shape)
    for tensor in tensors:
        if size and tensor.values.size % size == 0 and tensor.values.size > size:
            yield f"(the repetitions of {param.name} in {tensor.words})", tensor.values.size // size
    for owner, shape in shapes:
        rows = math.prod(shape[:-1])
        if rows > 1:
            yield f"(the rows{owner or ' of ' + param.name})", rows
        if math.prod(shape) > 1:
            yield f"(the elements{owner or ' of ' + param.name})", math.prod(shape)
