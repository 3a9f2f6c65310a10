"""A ggml tensor as the rest of the package sees it."""

import ctypes
import math
from typing import Any

from gradcheck.bindings.library import Library


class Tensor:
    """A tensor of a graph. `ne` is in ggml's order, `nb` its strides in bytes, `type` ggml's type name.

    Shape, strides and type never change after ggml made a tensor, so they are read once.
    """

    __slots__ = ("_library", "address", "nb", "ne", "pointer", "type")

    def __init__(self, library: Library, pointer: Any) -> None:
        struct = pointer.contents
        self._library = library
        self.pointer = pointer
        self.address = ctypes.addressof(struct)
        self.ne: tuple[int, ...] = tuple(struct.ne)
        self.nb: tuple[int, ...] = tuple(struct.nb)
        self.type = library.type_names[struct.type]

    @property
    def name(self) -> str:
        """The tensor's name in ggml; "" where it has none."""
        name: bytes = self.pointer.contents.name
        return name.decode(errors="replace")

    @property
    def op(self) -> str:
        """What ggml_op_desc says: SILU, MUL_MAT..., NONE for an input."""
        description: bytes = self._library.ggml.ggml_op_desc(self.pointer)
        return description.decode()

    @property
    def flags(self) -> int:
        """The flags in ggml: input, output, param, loss, compute."""
        return int(self.pointer.contents.flags)

    @property
    def sources(self) -> list[Any]:
        """Pointers to the sources; None for an empty slot, without the empty ones at the end."""
        found = [pointer or None for pointer in self.pointer.contents.src]
        while found and found[-1] is None:
            found.pop()
        return found

    @property
    def root(self) -> int:
        """The address of the tensor whose memory this one uses: its own, unless it is a view."""
        source = self.pointer.contents.view_src
        return ctypes.addressof(source.contents) if source else self.address

    @property
    def is_view(self) -> bool:
        """Whether the tensor uses another one's memory."""
        return bool(self.pointer.contents.view_src)

    @property
    def elements(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.ne)

    @property
    def nbytes(self) -> int:
        """From the first byte of the tensor to its last, whatever its strides."""
        return int(self._library.ggml.ggml_nbytes(self.pointer))

    def __str__(self) -> str:
        return f"{self.type} [{','.join(map(str, self.ne))}]"


def pointers_of(library: Library, context: Any) -> list[Any]:
    """Pointers to every tensor of a context, in the order of creation."""
    found, pointer = [], library.ggml.ggml_get_first_tensor(context)
    while pointer:
        found.append(pointer)
        pointer = library.ggml.ggml_get_next_tensor(context, pointer)
    return found


def address(pointer: Any) -> int:
    """The address of the struct behind a tensor pointer."""
    return ctypes.addressof(pointer.contents)
