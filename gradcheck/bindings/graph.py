"""Build a case's forward graph, once or several times side by side, without allocating it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradcheck.bindings.abort import Abort
from gradcheck.bindings.dtypes import type_id
from gradcheck.bindings.functions import Functions
from gradcheck.bindings.library import Library
from gradcheck.bindings.refusal import forward_refusal
from gradcheck.bindings.tensor import Tensor, pointers_of
from gradcheck.language import evaluate, parse_expression, parse_graph, run_graph
from gradcheck.language.parse import LanguageError
from gradcheck.model.case import Case, Input, Shape
from gradcheck.model.errors import InvalidCase, OutOfMemory
from gradcheck.model.graph import Cost

#: Nodes, and leaves, that a graph of one case may have; both directions together.
MAX_NODES = 2048
#: Of the tensors that a context holds, backward building leaves some out of the graph.
MAX_TENSORS = 2 * MAX_NODES


@dataclass(slots=True)
class Copy:
    """One forward graph's own tensors: its inputs, and everything that its statements name, `out` among it."""

    inputs: dict[str, Tensor]
    made: dict[str, Any]

    @property
    def out(self) -> Tensor:
        """The output."""
        out: Tensor = self.made["out"]
        return out


@dataclass(slots=True)
class Build:
    """Graphs in a context of their own; `free` gives everything back.

    cost: what one forward computation takes
    forward, backward: ggml's graphs; backward holds the forward nodes too and is None where not wanted
    gradients: the tensor that holds the gradient of each param; None where ggml made none
    cotangent: the tensor that takes the gradient of the output
    accumulators: the tensor that the gradient of each param is added to; empty where there are none
    """

    library: Library
    context: Any
    copies: list[Copy]
    cost: Cost
    forward: Any
    backward: Any = None
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    cotangent: Tensor | None = None
    accumulators: dict[str, Tensor] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs of the first copy."""
        return self.copies[0].inputs

    @property
    def out(self) -> Tensor:
        """The output of the first copy."""
        return self.copies[0].out

    @property
    def ne(self) -> Shape:
        """The shape of the output, in ggml's order."""
        n0, n1, n2, n3 = self.out.ne
        return n0, n1, n2, n3

    def tensors(self) -> list[Tensor]:
        """Every tensor, in the order of creation."""
        return [Tensor(self.library, pointer) for pointer in self.pointers()]

    def pointers(self) -> list[Any]:
        """Pointers to them: of many copies only those of the first need be looked at."""
        return pointers_of(self.library, self.context)

    def nodes(self, graph: Any) -> list[Tensor]:
        """The nodes of a graph in the order in which they are computed."""
        return self._nodes(graph, self.library.ggml.ggml_graph_n_nodes(graph))

    def first_nodes(self, graph: Any) -> list[Tensor]:
        """The nodes of the first copy: all others are like them, and come after them."""
        return self._nodes(graph, -(-self.library.ggml.ggml_graph_n_nodes(graph) // len(self.copies)))

    def _nodes(self, graph: Any, count: int) -> list[Tensor]:
        node = self.library.ggml.ggml_graph_node
        return [Tensor(self.library, node(graph, index)) for index in range(count)]

    def free(self) -> None:
        """Free the context with all tensors and graphs; harmless when repeated."""
        context, self.context = self.context, None
        if context:
            self.library.ggml.ggml_free(context)


def build(library: Library, case: Case) -> Build:
    """The forward graph of a case, with room for the backward one. Raises InvalidCase."""
    ggml = library.ggml
    size = MAX_TENSORS * ggml.ggml_tensor_overhead()
    size += sum(ggml.ggml_graph_overhead_custom(MAX_NODES, grads) for grads in (False, True))
    return _build_copies(library, case, 1, size, MAX_NODES)


def build_copies(library: Library, case: Case, copies: int) -> Build:
    """`copies` forward graphs side by side in one ggml graph. Raises InvalidCase."""
    ggml = library.ggml
    single = build(library, case)
    try:
        tensors = len(single.pointers())
    finally:
        single.free()
    nodes = copies * tensors + 1
    size = (nodes + 1) * ggml.ggml_tensor_overhead() + ggml.ggml_graph_overhead_custom(nodes, False)
    return _build_copies(library, case, copies, size, nodes)


def _build_copies(library: Library, case: Case, copies: int, size: int, nodes: int) -> Build:
    ggml = library.ggml
    context = ggml.ggml_init(ggml.ggml_init_params(mem_size=size, mem_buffer=None, no_alloc=True))
    if not context:
        raise OutOfMemory(f"no {size:,} bytes for the graph of {case.id}")
    functions = Functions(library, context)
    doing: list[Callable[[], tuple[str, str]]] = [lambda: ("the graph", "")]

    def forward() -> Build:
        graph = ggml.ggml_new_graph_custom(context, nodes, False)
        made = [_forward(library, case, functions, doing) for _ in range(copies)]
        for copy in made:
            ggml.ggml_build_forward_expand(graph, copy.out.pointer)
        return Build(library, context, made, _cost(library, case, made[0], functions), graph)

    try:
        return library.builder.run(forward)
    except Abort as abort:
        ggml.ggml_free(context)
        raise forward_refusal(abort, *doing[-1]()) from None
    except LanguageError as error:
        ggml.ggml_free(context)
        raise InvalidCase(str(error)) from None
    except BaseException:
        ggml.ggml_free(context)
        raise


def _forward(library: Library, case: Case, functions: Functions, doing: list[Callable[[], tuple[str, str]]]) -> Copy:
    inputs = {}
    for declared in case.inputs:
        doing.append(lambda declared=declared: (f"input {declared.name}", _shape(declared)))  # type: ignore[misc]
        inputs[declared.name] = _input(library, functions.context, declared)
    doing.append(lambda: functions.doing)
    made = run_graph(parse_graph(case.graph), {**dict(case.scope), **inputs}, functions.call, functions.words)
    out = made["out"]
    if not isinstance(out, Tensor):
        raise InvalidCase(f"`out` is {out!r}, not a tensor")
    own = {tensor.address for tensor in inputs.values()}
    for name, value in made.items():
        if isinstance(value, Tensor) and value.address not in own:
            library.ggml.ggml_set_name(value.pointer, name.encode())
    library.ggml.ggml_set_output(out.pointer)
    return Copy(inputs, made)


def _cost(library: Library, case: Case, copy: Copy, functions: Functions) -> Cost:
    """The declared figures; bytes that are not declared are those of `out` and of its sources."""
    scope = {**dict(case.scope), **copy.inputs, **copy.made}

    def declared(name: str, text: str) -> int:
        value = evaluate(parse_expression(text), scope, functions.call, functions.words)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise InvalidCase(f"`{name}` is {value!r}, not a number")
        return int(value)

    sources = [Tensor(library, source) for source in copy.out.sources if source is not None]
    moved = copy.out.nbytes + sum(source.nbytes for source in sources)
    return Cost(
        flops=declared("flops", case.flops) if case.flops else 0,
        bytes=declared("bytes", case.bytes) if case.bytes else moved,
    )


def _input(library: Library, context: Any, declared: Input) -> Tensor:
    ggml, number = library.ggml, type_id(library, declared.type)
    block = ggml.ggml_blck_size(number)
    # ggml only asserts this in debug builds.
    if declared.ne[0] % block or min(declared.ne) < 0:
        raise InvalidCase(f"input {declared.name}: {_shape(declared)} does not fill blocks of {block} elements")
    pointer = ggml.ggml_new_tensor_4d(context, number, *declared.ne)
    ggml.ggml_set_name(pointer, declared.name.encode())
    ggml.ggml_set_input(pointer)
    if declared.param:
        # Before anything is built on it: graph building asks for the flag.
        ggml.ggml_set_param(pointer)
    return Tensor(library, pointer)


def _shape(declared: Input) -> str:
    return f"{declared.type} [{','.join(map(str, declared.ne))}]"
