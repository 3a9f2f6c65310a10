"""Copies of a forward graph side by side, for many evaluations that differ in one element each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import NATIVE, Bytes, decode, encode, to_bfloat16
from gradcheck.bindings.graph import Build
from gradcheck.bindings.memory import Buffer, Slot, lay_out, place_views, strided
from gradcheck.bindings.program import encode_input, written_inputs
from gradcheck.bindings.tensor import Tensor

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device

#: On a device that is no host: above this it is quicker to send single elements than whole inputs.
_WHOLE_BYTES = 1 << 18


@dataclass(slots=True)
class _Input:
    """One input in all copies: `rows` is (copies, elements) over the memory or over a mirror of it."""

    tensor: Tensor
    slot: Slot
    base: NDArray[Any]
    rows: NDArray[Any]
    mirror: Bytes | None


class Batch:
    """`copies` forward graphs in one ggml graph; copy k of a tensor lies k strides after copy 0."""

    def __init__(self, device: Device, build: Build, values: Mapping[str, NDArray[Any]]) -> None:
        self._device, self._build, self._library = device, build, device.library
        self._copies = len(build.copies)
        self._everything = np.arange(self._copies)
        self._out: NDArray[Any] | None = None
        pointers = build.pointers()
        tensors = [Tensor(self._library, pointer) for pointer in pointers[: len(pointers) // self._copies]]
        slots, nbytes = lay_out(self._library, device.handle, tensors, copies=self._copies)
        self._buffer = Buffer(self._library, device.handle, max(nbytes, 1))
        try:
            _place(self._buffer, slots, tensors, pointers)
            place_views(self._library, tensors, pointers)
            self._find(slots)
            self.load(values)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def copies(self) -> int:
        """How many moves one call of `evaluate` takes at most."""
        return self._copies

    def evaluate(self, name: str, elements: NDArray[np.int64] | None, x: NDArray[np.float32]) -> NDArray[Any]:
        """Outputs after setting some elements of an input, other ones in each copy, in rows of one copy each.

        elements: (n, k) flat indices (C order of the NumPy shape) into input `name`, a row for each of n copies;
            None for all elements in their order
        x: (n, k), the values they take; afterwards the base values stand there again
        The array may be the device's memory itself: it is valid until the next call.
        """
        target, count = self._inputs[name], len(x)
        if count > self._copies:
            raise ValueError(f"{count} rows of elements for {self._copies} copies")
        for rewritten in self._rewritten:
            self._restore(rewritten)
        self._put(target, elements, self._converted(target, x))
        self._device.compute(self._build.forward)
        outputs = self._outputs(count)
        self._put(target, elements, target.base[None] if elements is None else target.base[elements], count)
        return outputs

    def load(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Put these values into the inputs of every copy."""
        for name, target in self._inputs.items():
            raw = encode_input(self._library, name, target.tensor, values[name])
            target.base = raw.view(target.rows.dtype)
            self._restore(target)

    def free(self) -> None:
        """Give the memory back; harmless when repeated. Arrays from `evaluate` are dead then."""
        self._inputs.clear()
        self._rewritten.clear()
        self._out = None
        self._buffer.free()
        self._build.free()

    def _find(self, slots: list[Slot]) -> None:
        """Where the inputs and the output of every copy lie."""
        by_address = {slot.tensor.address: slot for slot in slots}
        self._inputs = {
            name: _input(self._buffer, tensor, by_address[tensor.address])
            for name, tensor in self._build.inputs.items()
        }
        self._rewritten = [self._inputs[name] for name in written_inputs(self._build, self._build.forward)]
        out = self._build.out
        roots = {tensor.address for tensor in self._build.inputs.values()}
        # Restoring an input must not change an output that lies in it.
        self._shares_input = out.root in roots
        self._slot = by_address[out.root]
        self._start = self._buffer.offset(out)
        self._span = (self._copies - 1) * self._slot.stride + out.nbytes
        self._out = self._output_rows(self._buffer.read(self._start, self._span)) if self._buffer.host else None

    def _restore(self, target: _Input) -> None:
        target.rows[:] = target.base
        if target.mirror is not None:
            self._buffer.write(target.slot.offset, target.mirror)

    def _put(
        self, target: _Input, elements: NDArray[np.int64] | None, x: NDArray[Any], count: int | None = None
    ) -> None:
        """Set elements of the first `count` copies; every one has a row of x, or all have the same."""
        count = len(x) if count is None else count
        if elements is None:
            target.rows[:count] = x
        else:
            target.rows[self._everything[:count, None], elements] = x
        if target.mirror is None:
            return
        if elements is None or target.mirror.nbytes <= _WHOLE_BYTES or elements.shape[1] > 1:
            self._buffer.write(target.slot.offset, target.mirror)
            return
        width = target.rows.itemsize
        for row, (element, value) in enumerate(zip(elements.ravel(), x.ravel(), strict=True)):
            offset = target.slot.offset + row * target.slot.stride + int(element) * width
            self._buffer.write(offset, np.array([value]).view(np.uint8))

    def _converted(self, target: _Input, x: NDArray[np.float32]) -> NDArray[Any]:
        kind = target.tensor.type
        if kind == "f32":
            return x
        if kind == "bf16":
            return to_bfloat16(np.ascontiguousarray(x, dtype=np.float32))
        if kind in NATIVE:
            return encode(self._library, kind, x, 1).view(NATIVE[kind]).reshape(x.shape)
        raise ValueError(f"a single element of a {kind} tensor cannot be set")

    def _output_rows(self, raw: Bytes) -> NDArray[Any]:
        """The blocks of every copy's output, by stride over raw memory."""
        number = self._library.type_ids[self._build.out.type]
        ggml = self._library.ggml
        block, size = ggml.ggml_blck_size(number), ggml.ggml_type_size(number)
        return strided(self._build.out, raw, size, block, (self._copies, self._slot.stride))

    def _outputs(self, count: int) -> NDArray[Any]:
        out = self._build.out
        blocks = self._out
        if blocks is None:
            blocks = self._output_rows(self._buffer.read(self._start, self._span))
        blocks = blocks[:count]
        if out.type == "f32":
            flat = blocks.reshape(count, -1)
            return flat.copy() if self._shares_input and self._buffer.host else flat
        if out.type in NATIVE:
            wide = np.float32 if out.type == "f16" else np.float64
            return blocks.reshape(count, -1).astype(wide)
        return decode(self._library, out.type, np.ascontiguousarray(blocks)).reshape(count, -1)


def _place(buffer: Buffer, slots: list[Slot], tensors: list[Tensor], pointers: list[Any]) -> None:
    """Give the tensors of all copies their memory; `tensors` are those of the first, `pointers` are to all."""
    number = {tensor.address: index for index, tensor in enumerate(tensors)}
    for slot in slots:
        alike = pointers[number[slot.tensor.address] :: len(tensors)]
        for copy, pointer in enumerate(alike):
            buffer.place(pointer, slot.offset + copy * slot.stride)


def _input(buffer: Buffer, tensor: Tensor, slot: Slot) -> _Input:
    mirror = None if buffer.host else np.zeros(slot.end - slot.offset, dtype=np.uint8)
    memory = buffer.view(slot.offset, slot.end - slot.offset) if mirror is None else mirror
    # bf16 is kept as its bits; a quantised input only as bytes, since no single element of it can be set.
    dtype = NATIVE.get(tensor.type, np.dtype(np.uint16 if tensor.type == "bf16" else np.uint8))
    base = np.zeros(tensor.nbytes // dtype.itemsize, dtype)
    rows = np.ndarray((slot.copies, base.size), dtype, memory, strides=(slot.stride, dtype.itemsize))
    return _Input(tensor, slot, base, rows, mirror)
