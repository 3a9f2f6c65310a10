"""A tensor of the reference: a strided window on the float64 memory of its root, and the rule that fills it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcheck.model.case import Shape
from gradcheck.model.errors import InvalidCase
from gradcheck.reference.dtypes import Array, block_of, check_writable, is_plain, narrowed, row_size

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

    @values.setter
    def values(self, values: Array) -> None:
        self._values = values


class Tensor:
    """`ne` and `nb` (strides in bytes of `type`) are in ggml's order; `offset`, in bytes, is where a view begins.

    A quantised type stores its rows in blocks: nb[0] goes from block to block, and blocks are not taken apart.

    sources, rule: what it is computed from, and how; without a rule it is an input or a plain view
    as_is: the rule gives what the type holds already, and nothing is converted: a copy within a quantised type
    """

    __slots__ = ("as_is", "memory", "nb", "ne", "offset", "rule", "sources", "type")

    def __init__(
        self,
        kind: str,
        ne: Shape,
        nb: Shape,
        memory: Memory,
        offset: int = 0,
        sources: "tuple[Tensor | None, ...]" = (),
        rule: Rule | None = None,
        as_is: bool = False,
    ) -> None:
        self.type, self.ne, self.nb = kind, ne, nb
        self.memory, self.offset = memory, offset
        self.sources, self.rule, self.as_is = sources, rule, as_is
        if rule is not None and not as_is:
            check_writable(kind)
        size = block_of(kind)[1]
        if min(ne) < 0 or min(*nb, offset) < 0 or any(step % size for step in (*nb, offset)):
            unit = "elements" if is_plain(kind) else "blocks"
            raise InvalidCase(f"{self}: strides {list(nb)} and offset {offset} are not whole {unit} of {size} bytes")
        end, room = offset + self.nbytes, row_size(kind, memory.size)
        if min(ne) > 0 and self._is_whole and end > room:
            raise InvalidCase(f"{self}: it ends at byte {end}, {end - room} behind the end of its memory")

    @property
    def array(self) -> Array:
        """The elements in NumPy's order, as a window on the memory."""
        elements, size = block_of(self.type)
        if not self._is_whole:
            raise InvalidCase(f"{self}: its rows are not made of whole blocks of {elements} elements")
        item = self.memory.values.itemsize
        steps = tuple(step // size * elements * item for step in reversed(self.nb[1:]))
        window = self.memory.values[self.offset // size * elements :]
        return as_strided(window, self.shape, (*steps, self.nb[0] // size * item))

    @property
    def _is_whole(self) -> bool:
        """Whether rows are made of whole blocks, as those of any plain type: a transposed view only looks at them."""
        elements, size = block_of(self.type)
        return elements == 1 or (self.nb[0] == size and self.ne[0] % elements == 0)

    @property
    def nbytes(self) -> int:
        """Bytes from the first to the last element, as ggml counts them."""
        elements, size = block_of(self.type)
        first = (self.ne[0] - 1) * self.nb[0] + size if elements == 1 else self.ne[0] * self.nb[0] // elements
        return first + sum((n - 1) * step for n, step in zip(self.ne[1:], self.nb[1:], strict=True))

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
        """Store values of its shape, as its type holds them. Raises Unsupported where that is not known."""
        window = self.array
        if values.shape != window.shape:
            raise InvalidCase(f"{self}: the rule gave an array of shape {values.shape}")
        window[...] = values if self.as_is else narrowed(self.type, values)

    def compute(self) -> None:
        """Fill it from its sources; nothing to do for a plain view."""
        if self.rule is not None:
            self.write(self.rule(*(None if source is None else source.array for source in self.sources)))

    def __str__(self) -> str:
        return f"{self.type} [{','.join(map(str, self.ne))}]"


def contiguous(kind: str, ne: Shape) -> Shape:
    """The strides in bytes of a tensor without gaps."""
    row = row_size(kind, ne[0])
    return (block_of(kind)[1], row, row * ne[1], row * ne[1] * ne[2])


def shape4(*ne: int) -> Shape:
    """A shape of one to four dimensions, filled up with ones."""
    filled = (*ne, 1, 1, 1)
    return (filled[0], filled[1], filled[2], filled[3]) if len(ne) < 4 else (ne[0], ne[1], ne[2], ne[3])


def new(kind: str, ne: Shape, rule: Rule | None = None, *sources: Tensor | None, as_is: bool = False) -> Tensor:
    """A tensor with memory of its own."""
    block = block_of(kind)[0]
    demand(ne[0] % block == 0, f"rows of {ne[0]} elements of {kind} are not made of whole blocks of {block}")
    return Tensor(kind, ne, contiguous(kind, ne), Memory(math.prod(ne)), 0, sources, rule, as_is)


def like(a: Tensor, rule: Rule, *sources: Tensor | None, as_is: bool = False) -> Tensor:
    """A new tensor with the type and shape of `a`, which is the first source."""
    return new(a.type, a.ne, rule, a, *sources, as_is=as_is)


def over(a: Tensor, rule: Rule, *sources: Tensor | None, as_is: bool = False) -> Tensor:
    """The in-place twin of `like`: a view of `a`, the first source, into which the result is written."""
    return Tensor(a.type, a.ne, a.nb, a.memory, a.offset, (a, *sources), rule, as_is)


def demand(holds: bool, text: str) -> None:
    """Refuse a case that makes no sense. Raises InvalidCase."""
    if not holds:
        raise InvalidCase(text)
