"""Values of options as click parameter types."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gradcheck.model.errors import UsageError
from gradcheck.model.nearest import did_you_mean
from gradcheck.model.server import parse_endpoint
from gradcheck.reports import FORMATS
from gradcheck.variants import ALL, DEFAULT, NONE, VARIANTS

# click's parameter types are generic for a type checker, and in its newest release only.
if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType

_Param = click.Parameter | None
_Context = click.Context | None

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


class OpList(_Type):
    """`SILU,MUL*,ADD(type=f32,ne=[1,1,8,1])`: ops, globs and case ids between commas."""

    name = "OP[,OP...]"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[str, ...]:
        """The items of the list."""
        items = tuple(item for item in split_ops(value) if item)
        return items or self.fail("names no op", param, ctx)


def split_ops(text: str) -> Iterator[str]:
    """The parts of `text` between commas that stand in no parentheses or brackets."""
    depth, part = 0, ""
    for character in text:
        depth = max(0, depth + _BRACKETS.get(character, 0))
        if character == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += character
    yield part.strip()


class VariantList(_Type):
    """`sliced,tails`: names of variants, or one of the words all, none and default."""

    name = "NAME[,NAME...]"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[str, ...]:
        """The names, each once."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        words = (ALL, DEFAULT, NONE)
        for name in names:
            if name not in VARIANTS and name not in words:
                listed = ", ".join([*words, *VARIANTS])
                hint = did_you_mean(name, [*words, *VARIANTS])
                self.fail(f"there is no variant {name!r}{hint}; there are {listed}", param, ctx)
        if len(names) > 1 and set(names) & set(words):
            self.fail(f"{', '.join(words)} stand alone", param, ctx)
        return names or self.fail("names no variant", param, ctx)


class Pattern(_Type):
    """A regular expression, kept as text."""

    name = "REGEX"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> str:
        """The text of a valid expression."""
        try:
            re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)
        return str(value)


class Size(_Type):
    """A number of bytes: 512M, 4G, 1.5GiB; powers of 1024."""

    name = "SIZE"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> int:
        """The bytes."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        size = int(float(match[1]) * 1024 ** _POWERS[match[2].upper()]) if match else 0
        return size or self.fail(f"{value!r} is no size; write 512M or 4G", param, ctx)


class ThreadCounts(_Type):
    """`1,2,8`: numbers of threads, each once."""

    name = "N[,N...]"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[int, ...]:
        """The numbers, in the order given."""
        if isinstance(value, tuple):
            return value
        counts = tuple(dict.fromkeys(int(part) if part.strip().isdecimal() else 0 for part in value.split(",")))
        return counts if all(counts) else self.fail(f"{value!r} is no list of thread counts; write 1,2", param, ctx)


class Limit(_Type):
    """`NAME=VALUE`: a bound of a metric."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[str, float]:
        """The name and the bound."""
        if isinstance(value, tuple):
            return value
        name, equals, number = value.partition("=")
        try:
            bound = float(number)
        except ValueError:
            bound = -1.0
        if not equals or not name.strip() or not bound >= 0:
            self.fail(f"{value!r} is no limit; write NAME=VALUE, as in maa=1e-4", param, ctx)
        return name.strip(), bound


class FormFile(_Type):
    """`FORM=FILE`: a form of the report and the file that takes it."""

    name = "FORM=FILE"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[str, str]:
        """The form and the file."""
        if isinstance(value, tuple):
            return value
        form, equals, file = value.partition("=")
        if not equals or not file:
            self.fail(f"{value!r} names no file; write FORM=FILE, as in json=run.json", param, ctx)
        if form not in FORMATS:
            self.fail(f"{form!r} is no form; there are {', '.join(FORMATS)}", param, ctx)
        return form, file


class Endpoint(_Type):
    """`HOST:PORT`: an address to listen on."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: _Param, ctx: _Context) -> tuple[str, int]:
        """The host and the port."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_endpoint(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)
