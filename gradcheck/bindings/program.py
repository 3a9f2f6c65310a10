"""A case's graph on a device: load, forward, backward, free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import Bytes, encode, epsilon, is_packed
from gradcheck.bindings.graph import Build
from gradcheck.bindings.memory import (
    POISON,
    SENTINEL,
    Buffer,
    Slot,
    lay_out,
    place_views,
    tensor_values,
)
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case, Shape
from gradcheck.model.graph import Cost

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device

Array = NDArray[np.float64]

#: Ops that only look at memory in another way: as views they write nothing.
VIEW_OPS = frozenset({"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"})


class Program:
    """One case on one device, each tensor in its own memory.

    Before each run all but the inputs is poisoned with NaN; after it `overwrites` and `changed_inputs`
    know what was written where nothing may write.
    """

    def __init__(self, device: Device, case: Case, build: Build) -> None:
        library = device.library
        self._device, self._case, self._build, self._library = device, case, build, library
        tensors = build.tensors()
        self._slots, nbytes = lay_out(library, device.handle, tensors)
        self._buffer = Buffer(library, device.handle, nbytes)
        try:
            for slot in self._slots:
                self._buffer.place(slot.tensor.pointer, slot.offset)
            place_views(library, tensors)
        except BaseException:
            self._buffer.free()
            raise
        self._poisoned = _spans([slot for slot in self._slots if slot.tensor.address not in self._kept()])
        self._sentinels = Sentinels(self._buffer, self._slots)
        self._rewritten = written_inputs(build, build.forward)
        self._raw: dict[str, Bytes] = {}
        self._sums: dict[int, Bytes] = {}
        self._changed: list[str] = []
        self._written = {declared.name for declared in case.inputs if declared.written}
        self._narrowest = narrowest_epsilon(build)

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        return self._build.ne

    @property
    def narrowest_eps(self) -> float:
        """The machine epsilon of the narrowest float type in the forward graph."""
        return self._narrowest

    def load(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Convert and write every input; a flat array is repeated along a larger tensor.

        Raises KeyError or ValueError where one is missing or misshapen.
        """
        for name, tensor in self._build.inputs.items():
            self._raw[name] = encode_period(self._library, name, tensor, values[name])
            self._restore(name)
        for tensor in self._build.accumulators.values():
            self._sums[tensor.address] = np.zeros(tensor.nbytes, dtype=np.uint8)
        self._sentinels.broken.clear()
        self._changed.clear()

    def load_accumulators(self, values: Mapping[str, Array]) -> None:
        """Set what the gradient accumulators of params hold before each backward pass; `load` sets them to 0."""
        for name, tensor in self._build.accumulators.items():
            if name in values:
                self._sums[tensor.address] = encode_input(self._library, name, tensor, values[name])

    def stored(self, name: str) -> Array:
        """An input as the device holds it after conversion to its type, in float64."""
        tensor = self._build.inputs[name]
        return tensor_values(self._library, tensor, _filled(self._raw[name], tensor))

    def packed(self, name: str) -> Bytes | None:
        """The bytes of an input whose type stores elements in blocks, as they were loaded; None for any other."""
        tensor = self._build.inputs[name]
        return _filled(self._raw[name], tensor) if is_packed(self._library, tensor.type) else None

    def forward(self) -> Array:
        """Compute the forward graph and read the whole output, in float64."""
        self._run(self._build.forward)
        return self._buffer.values(self._build.out)

    def backward(self, cotangent: Array) -> dict[str, Array | None]:
        """J^T v for each param by name, added to what its accumulator holds; None where ggml made no gradient for it.

        Computes forward too.
        """
        target = self._build.cotangent
        if target is None:
            raise ValueError(f"{self._case.id} was opened without its backward graph")
        raw = encode_input(self._library, "the cotangent", target, cotangent)
        self._buffer.write(self._buffer.offset(target), raw)
        for accumulator in self._build.accumulators.values():
            self._buffer.write(self._buffer.offset(accumulator), self._sums[accumulator.address])
        self._run(self._build.backward)
        return {
            name: None if gradient is None else self._buffer.values(gradient)
            for name, gradient in self._build.gradients.items()
        }

    def overwrites(self) -> list[str]:
        """Names of tensors behind whose end `forward` or `backward` wrote something since the last `load`."""
        return list(self._sentinels.broken)

    def changed_inputs(self) -> list[str]:
        """Names of inputs that were changed since the last `load`, in-place ops and declared ones aside."""
        return list(self._changed)

    @property
    def cost(self) -> Cost:
        """What one forward computation takes."""
        return self._build.cost

    def free(self) -> None:
        """Give the memory back; harmless when repeated."""
        self._sentinels.forget()
        self._buffer.free()
        self._build.free()

    def _run(self, graph: Any) -> None:
        for name in self._rewritten:
            self._restore(name)
        for offset, nbytes in self._poisoned:
            self._buffer.fill(offset, nbytes, POISON)
        self._device.compute(graph)
        self._sentinels.check()
        self._check_inputs()

    def _check_inputs(self) -> None:
        for name, raw in self._raw.items():
            if name in self._rewritten:
                continue
            tensor = self._build.inputs[name]
            if not self._buffer.repeats(self._buffer.offset(tensor), tensor.nbytes, raw):
                if name not in self._written:
                    _note(self._changed, name)
                self._restore(name)

    def _restore(self, name: str) -> None:
        tensor = self._build.inputs[name]
        self._buffer.repeat(self._buffer.offset(tensor), tensor.nbytes, self._raw[name])

    def _kept(self) -> set[int]:
        kept = {tensor.address for tensor in (*self._build.inputs.values(), *self._build.accumulators.values())}
        if self._build.cotangent is not None:
            kept.add(self._build.cotangent.address)
        return kept


class Sentinels:
    """The gaps around tensors, whose bytes nothing may change. `broken` names what did."""

    def __init__(self, buffer: Buffer, slots: list[Slot]) -> None:
        self._buffer: Buffer | None = buffer
        self.broken: list[str] = []
        ends = [0, *(slot.end for slot in slots)]
        starts = [*(slot.offset for slot in slots), buffer.nbytes]
        names = ["the start of the buffer", *(slot.tensor.name for slot in slots)]
        self._gaps = [gap for gap in zip(ends, starts, names, strict=True) if gap[1] > gap[0]]
        for start, end, _name in self._gaps:
            buffer.fill(start, end - start, SENTINEL)
        ranges = [np.arange(start, end) for start, end, _name in self._gaps]
        # On a host buffer all gaps are looked at in one go.
        self._index = np.concatenate(ranges) if buffer.host and ranges else None

    def check(self) -> None:
        """Look at every gap; what has changed is noted and repaired."""
        buffer = self._buffer
        if buffer is None:
            return
        if self._index is not None and (buffer.view(0, buffer.nbytes)[self._index] == SENTINEL).all():
            return
        for start, end, name in self._gaps:
            if (buffer.read(start, end - start) != SENTINEL).any():
                _note(self.broken, name)
                buffer.fill(start, end - start, SENTINEL)

    def forget(self) -> None:
        """Look at the buffer no more: it is going to be freed."""
        self._buffer = None


def written_inputs(build: Build, graph: Any) -> frozenset[str]:
    """The inputs of the first copy that ops of a graph write into."""
    roots = {node.root for node in build.first_nodes(graph) if node.is_view and node.op not in VIEW_OPS}
    return frozenset(name for name, tensor in build.inputs.items() if tensor.address in roots)


def narrowest_epsilon(build: Build) -> float:
    """The machine epsilon of the narrowest float type in the forward graph; that of f32 where there is none."""
    tensors = [*build.inputs.values(), *build.first_nodes(build.forward)]
    return max((eps for eps in (epsilon(t.type) for t in tensors) if eps is not None), default=2.0**-23)


def encode_input(library: Any, name: str, tensor: Tensor, values: NDArray[Any]) -> Bytes:
    """The bytes of a contiguous tensor; a flat array is repeated along it. Raises ValueError for another shape."""
    return _filled(encode_period(library, name, tensor, values), tensor)


def encode_period(library: Any, name: str, tensor: Tensor, values: NDArray[Any]) -> Bytes:
    """The bytes that, repeated, fill a contiguous tensor: all of them, but for a flat array that is smaller."""
    shape = tuple(reversed(tensor.ne))
    if values.ndim == 1 and 0 < values.size < tensor.elements:
        return encode(library, tensor.type, values, values.size)
    if np.shape(values) != shape:
        raise ValueError(f"{name} has shape {np.shape(values)}, the tensor takes {shape}")
    return encode(library, tensor.type, values, tensor.ne[0])


def _filled(raw: Bytes, tensor: Tensor) -> Bytes:
    return raw if raw.size == tensor.nbytes else np.resize(raw, tensor.nbytes)


def _note(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _spans(slots: list[Slot]) -> list[tuple[int, int]]:
    return [(slot.offset, slot.tensor.nbytes) for slot in slots]
