"""A tensor of the reference: a strided window on the float64 memory of its root, and the rule that fills it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcheck.model.case import Shape
from gradcheck.model.errors import InvalidCase
from gradcheck.reference.dtypes import SIZES, Array, narrowed

#: Computes a tensor from the arrays of its sources, in NumPy's order; an absent source is None.
Rule = Callable[..., Array]


class Memory:
    """The elements of a root tensor, one float64 each; NaN where nothing was written."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: Array | None = None

    @property
    def values(self) -> Array:
        """The elements; they get their room when they are first asked for."""
        if self._values is None:
            self._values = np.full(self.size, np.nan)
        return self._values


class Tensor:
    """`ne` and `nb` (strides in bytes of `type`) are in ggml's order; `offset`, in bytes, is where a view begins.

    sources, rule: what it is computed from, and how; without a rule it is an input or a plain view
    """

    __slots__ = ("memory", "nb", "ne", "offset", "rule", "sources", "type")

    def __init__(
        self,
        kind: str,
        ne: Shape,
        nb: Shape,
        memory: Memory,
        offset: int = 0,
        sources: "tuple[Tensor | None, ...]" = (),
        rule: Rule | None = None,
    ) -> None:
        self.type, self.ne, self.nb = kind, ne, nb
        self.memory, self.offset = memory, offset
        self.sources, self.rule = sources, rule
        size = SIZES[kind]
        if min(ne) < 0 or min(*nb, offset) < 0 or any(step % size for step in (*nb, offset)):
            raise InvalidCase(f"{self}: strides {list(nb)} and offset {offset} are not whole elements of {size} bytes")
        end = offset + sum((n - 1) * step for n, step in zip(ne, nb, strict=True)) + size
        if min(ne) > 0 and end > memory.size * size:
            raise InvalidCase(f"{self}: it ends at byte {end}, {end - memory.size * size} behind the end of its memory")

    @property
    def array(self) -> Array:
        """The elements in NumPy's order, as a window on the memory."""
        size, item = SIZES[self.type], self.memory.values.itemsize
        steps = tuple(step // size * item for step in reversed(self.nb))
        return as_strided(self.memory.values[self.offset // size :], self.shape, steps)

    @property
    def shape(self) -> tuple[int, ...]:
        """`ne` in NumPy's order."""
        return tuple(reversed(self.ne))

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.ne)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements stand one after the other, in order."""
        pairs = zip(self.ne, self.nb, contiguous(self.type, self.ne), strict=True)
        return all(n == 1 or step == want for n, step, want in pairs)

    def write(self, values: Any) -> None:
        """Store values of its shape, as its type holds them."""
        window = self.array
        if values.shape != window.shape:
            raise InvalidCase(f"{self}: the rule gave an array of shape {values.shape}")
        window[...] = narrowed(self.type, values)

    def compute(self) -> None:
        """Fill it from its sources; nothing to do for a plain view."""
        if self.rule is not None:
            self.write(self.rule(*(None if source is None else source.array for source in self.sources)))

    def __str__(self) -> str:
        return f"{self.type} [{','.join(map(str, self.ne))}]"


def contiguous(kind: str, ne: Shape) -> Shape:
    """The strides in bytes of a tensor without gaps."""
    size = SIZES[kind]
    return (size, size * ne[0], size * ne[0] * ne[1], size * ne[0] * ne[1] * ne[2])


def shape4(*ne: int) -> Shape:
    """A shape of one to four dimensions, filled up with ones."""
    filled = (*ne, 1, 1, 1)
    return (filled[0], filled[1], filled[2], filled[3]) if len(ne) < 4 else (ne[0], ne[1], ne[2], ne[3])


def new(kind: str, ne: Shape, rule: Rule | None = None, *sources: Tensor | None) -> Tensor:
    """A tensor with memory of its own."""
    return Tensor(kind, ne, contiguous(kind, ne), Memory(math.prod(ne)), 0, sources, rule)


def like(a: Tensor, rule: Rule, *sources: Tensor | None) -> Tensor:
    """A new tensor with the type and shape of `a`, which is the first source."""
    return new(a.type, a.ne, rule, a, *sources)


def over(a: Tensor, rule: Rule, *sources: Tensor | None) -> Tensor:
    """The in-place twin of `like`: a view of `a`, the first source, into which the result is written."""
    return Tensor(a.type, a.ne, a.nb, a.memory, a.offset, (a, *sources), rule)


def demand(holds: bool, text: str) -> None:
    """Refuse a case that makes no sense. Raises InvalidCase."""
    if not holds:
        raise InvalidCase(text)
