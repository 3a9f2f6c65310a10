"""One buffer of a device in which every tensor has a place of its own, with sentinels in between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import NATIVE, Bytes, decode
from gradcheck.bindings.library import Library, device_memory
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.errors import LibraryError, NoRoom, OutOfMemory
from gradcheck.model.room import demand_room, in_words

#: The byte between tensors; neither 0 nor the byte of a NaN, so that both are seen there.
SENTINEL = 0xA5
#: Bytes between tensors, at least: wider than a vector register or a block that a kernel may overrun.
GAP_BYTES = 256
#: Every float type's pattern of ones is a NaN.
POISON = 0xFF


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor's memory begins, in bytes from the start of the buffer, and how long it is."""

    tensor: Tensor
    offset: int
    nbytes: int
    copies: int = 1
    stride: int = 0

    @property
    def end(self) -> int:
        """The first byte after the last copy."""
        return self.offset + self.nbytes + (self.copies - 1) * self.stride


class Buffer:
    """Memory of a device. `host` says that it can be read and written like our own; `base` is its address."""

    def __init__(self, library: Library, device: Any, nbytes: int) -> None:
        ggml = library.ggml
        self._library = library
        self.nbytes = nbytes
        kind = ggml.ggml_backend_dev_buffer_type(device)
        demand_device_room(library, device, kind, nbytes)
        self.handle = ggml.ggml_backend_buft_alloc_buffer(kind, nbytes)
        if not self.handle:
            raise OutOfMemory(f"{_name(ggml, device)} has no {nbytes:,} bytes")
        self.base: int = ggml.ggml_backend_buffer_get_base(self.handle) or 0
        self.host = bool(ggml.ggml_backend_buffer_is_host(self.handle))
        self._bytes = _memory(self.base, nbytes) if self.host else None
        self._context = ggml.ggml_init(
            ggml.ggml_init_params(mem_size=ggml.ggml_tensor_overhead(), mem_buffer=None, no_alloc=True)
        )
        # Device memory is reached through tensors alone: one that covers all of it.
        self._cover = None
        if not self.host:
            self._cover = ggml.ggml_new_tensor_1d(self._context, library.type_ids["i8"], nbytes)
            self.place(self._cover, 0)

    def place(self, pointer: Any, offset: int) -> None:
        """Give a tensor that is no view its memory. Raises LibraryError."""
        status = self._library.ggml.ggml_backend_tensor_alloc(self.handle, pointer, self.base + offset)
        if status:
            raise LibraryError(f"ggml_backend_tensor_alloc failed with status {status}")

    def view(self, offset: int, nbytes: int) -> Bytes:
        """Host memory as an array, without a copy."""
        assert self._bytes is not None
        return self._bytes[offset : offset + nbytes]

    def read(self, offset: int, nbytes: int) -> Bytes:
        """Bytes of the buffer; on a host buffer without a copy."""
        if self._bytes is not None:
            return self._bytes[offset : offset + nbytes]
        out = np.empty(nbytes, dtype=np.uint8)
        if nbytes:
            self._library.ggml.ggml_backend_tensor_get(self._cover, out.ctypes.data, offset, nbytes)
        return out

    def write(self, offset: int, data: Bytes) -> None:
        """Put bytes into the buffer."""
        if self._bytes is not None:
            self._bytes[offset : offset + data.size] = data
        elif data.size:
            data = np.ascontiguousarray(data)
            self._library.ggml.ggml_backend_tensor_set(self._cover, data.ctypes.data, offset, data.size)

    def repeat(self, offset: int, nbytes: int, data: Bytes) -> None:
        """Put bytes into `nbytes` of the buffer, again and again until those are full."""
        for start in range(0, nbytes, max(data.size, 1)):
            self.write(offset + start, data[: nbytes - start])

    def repeats(self, offset: int, nbytes: int, data: Bytes) -> bool:
        """Whether `nbytes` of the buffer hold what `repeat` puts there."""
        return all(
            np.array_equal(self.read(offset + start, min(data.size, nbytes - start)), data[: nbytes - start])
            for start in range(0, nbytes, max(data.size, 1))
        )

    def fill(self, offset: int, nbytes: int, byte: int) -> None:
        """Set bytes of the buffer to one value."""
        if self._bytes is not None:
            self._bytes[offset : offset + nbytes] = byte
        else:
            self.write(offset, np.full(nbytes, byte, dtype=np.uint8))

    def offset(self, tensor: Tensor) -> int:
        """Where the data of a placed tensor or view begins, from the start of the buffer."""
        return int(tensor.pointer.contents.data or self.base) - self.base

    def values(self, tensor: Tensor) -> NDArray[np.float64]:
        """What a tensor or view holds, read by its strides; a copy in NumPy's order."""
        raw = self.read(self.offset(tensor), tensor.nbytes)
        return tensor_values(self._library, tensor, raw)

    def free(self) -> None:
        """Give the memory back; harmless when repeated. Views of it are dead then."""
        ggml = self._library.ggml
        self._bytes = None
        if self.handle:
            ggml.ggml_backend_buffer_free(self.handle)
            ggml.ggml_free(self._context)
            self.handle = self._context = self._cover = None


def lay_out(
    library: Library, device: Any, tensors: list[Tensor], gap: int = GAP_BYTES, copies: int = 1
) -> tuple[list[Slot], int]:
    """A slot for every tensor that is no view, and the bytes that all need, gaps at both ends included.

    With `copies`, every slot is a row of that many places at a constant stride.
    """
    ggml = library.ggml
    kind = ggml.ggml_backend_dev_buffer_type(device)
    alignment = ggml.ggml_backend_buft_get_alignment(kind)
    end, slots = _up(gap, alignment), []
    for tensor in tensors:
        if tensor.is_view:
            continue
        nbytes = ggml.ggml_backend_buft_get_alloc_size(kind, tensor.pointer)
        stride = _up(nbytes, alignment)
        slots.append(Slot(tensor, end, nbytes, copies, stride))
        end = _up(end + stride * copies + gap, alignment)
    return slots, end


def place_views(library: Library, tensors: list[Tensor], pointers: list[Any] | None = None) -> None:
    """Tell every view where the memory of its source is. Raises LibraryError.

    pointers: to the tensors and after them to those of further copies, in the same order
    """
    everything = pointers or [tensor.pointer for tensor in tensors]
    for index, tensor in enumerate(tensors):
        for pointer in everything[index :: len(tensors)] if tensor.is_view else ():
            if library.ggml.ggml_backend_view_init(pointer):
                raise LibraryError(f"ggml_backend_view_init failed for {tensor.name}")


def strided(tensor: Tensor, raw: Bytes, block_bytes: int, block: int, outer: tuple[int, int]) -> NDArray[Any]:
    """Blocks of a tensor as an array over raw bytes: (copies, ne3, ne2, ne1, ne0 / block).

    outer: how many copies there are, and the bytes from one to the next
    """
    dtype = NATIVE.get(tensor.type, np.dtype((np.void, block_bytes)))
    shape = (outer[0], *reversed(tensor.ne[1:]), tensor.ne[0] // block)
    return np.ndarray(shape, dtype, raw, strides=(outer[1], *reversed(tensor.nb)))


def tensor_values(library: Library, tensor: Tensor, raw: Bytes) -> NDArray[np.float64]:
    """The values of a tensor whose first byte is the first of `raw`, in NumPy's order."""
    shape = tuple(reversed(tensor.ne))
    if 0 in shape:
        return np.zeros(shape)
    number = library.type_ids[tensor.type]
    block = library.ggml.ggml_blck_size(number)
    blocks = strided(tensor, raw, library.ggml.ggml_type_size(number), block, (1, 0))
    values = blocks if tensor.type in NATIVE else decode(library, tensor.type, np.ascontiguousarray(blocks))
    return np.array(values, dtype=np.float64, order="C").reshape(shape)


def _up(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


def demand_device_room(library: Library, device: Any, kind: Any, nbytes: int) -> None:
    """Raises NoRoom where a buffer of `nbytes` cannot be had."""
    ggml = library.ggml
    if ggml.ggml_backend_buft_is_host(kind):
        demand_room(nbytes, f"the graph on {_name(ggml, device)}")
    free, _total = device_memory(ggml, device)
    most = ggml.ggml_backend_buft_get_max_size(kind)
    given = min(free, most) if free else most
    if nbytes > given:
        raise NoRoom(f"the graph takes {in_words(nbytes)} on {_name(ggml, device)}, which has {in_words(given)} for it")


class _Memory:
    """Memory that is not NumPy's own, in the form that np.asarray takes."""

    def __init__(self, base: int, nbytes: int) -> None:
        self.__array_interface__ = {"data": (base, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


def _memory(base: int, nbytes: int) -> Bytes:
    return np.asarray(_Memory(base, nbytes))


def _name(ggml: Any, device: Any) -> str:
    name: bytes = ggml.ggml_backend_dev_name(device)
    return name.decode()
