"""What all programs have in common whose memory passes from tensor to tensor, as it does in applications."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import Bytes, is_packed
from gradcheck.bindings.graph import MAX_NODES, Build
from gradcheck.bindings.library import Library
from gradcheck.bindings.memory import POISON, tensor_values
from gradcheck.bindings.program import encode_input, narrowest_epsilon, written_inputs
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.case import Case, Shape

Array = NDArray[np.float64]


class SharedMemoryProgram(ABC):
    """One case in one graph for both directions. A subclass allocates `_graph` and says how it is computed.

    Nothing can be said of writes outside of a tensor, since tensors lie side by side. The memory that they share
    (`_scratch`) is filled with NaN before each run: an element that nothing wrote is seen. Inputs are written anew
    each time; those that lie where nothing else does (`_kept`) are compared afterwards.
    """

    def __init__(self, library: Library, case: Case, build: Build) -> None:
        self._library, self._case, self._build = library, case, build
        self._graph = build.backward or _inference_graph(build)
        self._raw: dict[int, Bytes] = {}
        self._changed: list[str] = []
        self._written = written_inputs(build, self._graph) | {i.name for i in case.inputs if i.written}
        self._scratch: list[int] = []
        self._kept: dict[str, Tensor] = {}

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        return self._build.ne

    @property
    def narrowest_eps(self) -> float:
        """The machine epsilon of the narrowest float type in the forward graph."""
        return narrowest_epsilon(self._build)

    def load(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Convert every input. Raises KeyError or ValueError where one is missing or misshapen."""
        for name, tensor in self._build.inputs.items():
            self._raw[tensor.address] = encode_input(self._library, name, tensor, values[name])
        cotangent = self._build.cotangent
        for tensor in (*self._build.accumulators.values(), *([cotangent] if cotangent else [])):
            self._raw[tensor.address] = np.zeros(tensor.nbytes, dtype=np.uint8)
        self._changed.clear()

    def load_accumulators(self, values: Mapping[str, Array]) -> None:
        """Set what the gradient accumulators of params hold before each run; `load` sets them to 0."""
        for name, tensor in self._build.accumulators.items():
            if name in values:
                self._raw[tensor.address] = encode_input(self._library, name, tensor, values[name])

    def stored(self, name: str) -> Array:
        """An input as the device holds it after conversion to its type, in float64."""
        tensor = self._build.inputs[name]
        return tensor_values(self._library, tensor, self._raw[tensor.address])

    def packed(self, name: str) -> Bytes | None:
        """The bytes of an input whose type stores elements in blocks, as they were loaded; None for any other."""
        tensor = self._build.inputs[name]
        return self._raw[tensor.address] if is_packed(self._library, tensor.type) else None

    def forward(self) -> Array:
        """Compute the graph and read the whole output, in float64."""
        self.compute()
        return self._values(self._build.out)

    def backward(self, cotangent: Array) -> dict[str, Array | None]:
        """J^T v for each param by name, added to what its accumulator holds; None where ggml made no gradient."""
        target = self._build.cotangent
        if target is None:
            raise ValueError(f"{self._case.id} was opened without its backward graph")
        self._raw[target.address] = encode_input(self._library, "the cotangent", target, cotangent)
        self.compute()
        return {
            name: None if gradient is None else self._values(gradient)
            for name, gradient in self._build.gradients.items()
        }

    def compute(self) -> None:
        """Write the inputs, whose memory the last run may have used, and compute the graph."""
        self._poison()
        for tensor in self._given():
            # What no node reads has no memory.
            if tensor.pointer.contents.buffer:
                self._write(tensor, self._raw[tensor.address])
        self._execute()
        for name, tensor in self._kept.items():
            if name not in self._changed and not np.array_equal(self._read(tensor), self._raw[tensor.address]):
                self._changed.append(name)

    def overwrites(self) -> list[str]:
        """Nothing: there are no gaps between tensors that could be looked at."""
        return []

    def changed_inputs(self) -> list[str]:
        """Names of inputs in memory of their own that were changed since the last `load`, as for other programs."""
        return list(self._changed)

    def free(self) -> None:
        """Give the memory back; harmless when repeated."""
        self._free_memory()
        self._build.free()

    @abstractmethod
    def _execute(self) -> None:
        """Compute the graph and wait for it."""

    @abstractmethod
    def _free_memory(self) -> None:
        """Give back all memory but the context's; harmless when repeated."""

    def _poison(self) -> None:
        """Fill shared memory with NaN.

        Where it is not the host's, by way of tensors: Vulkan's ggml_backend_buffer_clear of 0.15.3 writes the byte as a
        word of four, which is a tiny number.
        """
        ggml, far = self._library.ggml, set()
        for buffer in self._scratch:
            if ggml.ggml_backend_buffer_is_host(buffer):
                ggml.ggml_backend_buffer_clear(buffer, POISON)
            else:
                far.add(buffer)
        for tensor in self._build.tensors() if far else ():
            if not tensor.is_view and tensor.pointer.contents.buffer in far:
                self._write(tensor, np.full(tensor.nbytes, POISON, dtype=np.uint8))

    def _given(self) -> Iterator[Tensor]:
        """What is written before each run."""
        yield from self._build.inputs.values()
        yield from self._build.accumulators.values()
        if self._build.cotangent is not None:
            yield self._build.cotangent

    def _protect_results(self) -> None:
        """Let the output and the gradients, and what they view, outlive the computation."""
        ggml = self._library.ggml
        for result in (self._build.out, *self._build.gradients.values()):
            if result is not None:
                ggml.ggml_set_output(result.pointer)
                if result.is_view:
                    ggml.ggml_set_output(result.pointer.contents.view_src)

    def _buffers(self) -> set[int]:
        """The buffers in which tensors lie."""
        return {found for tensor in self._build.tensors() if (found := tensor.pointer.contents.buffer)}

    def _values(self, tensor: Tensor) -> Array:
        return tensor_values(self._library, tensor, self._read(tensor))

    def _read(self, tensor: Tensor) -> Bytes:
        raw = np.empty(0 if 0 in tensor.ne else tensor.nbytes, dtype=np.uint8)
        if raw.size:
            self._library.ggml.ggml_backend_tensor_get(tensor.pointer, raw.ctypes.data, 0, raw.size)
        return raw

    def _write(self, tensor: Tensor, raw: Bytes) -> None:
        if raw.size:
            raw = np.ascontiguousarray(raw)
            self._library.ggml.ggml_backend_tensor_set(tensor.pointer, raw.ctypes.data, 0, raw.size)


def _inference_graph(build: Build) -> Any:
    """The forward graph as inference has it: nothing is a param, which would be a node of the graph itself."""
    ggml = build.library.ggml
    for tensor in build.inputs.values():
        tensor.pointer.contents.flags &= ~ggml.GGML_TENSOR_FLAG_PARAM
    graph = ggml.ggml_new_graph_custom(build.context, MAX_NODES, False)
    ggml.ggml_build_forward_expand(graph, build.out.pointer)
    return graph
