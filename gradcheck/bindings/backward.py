"""Build a case's backward graph after its forward one, and say why where ggml has none."""

import ctypes
from collections.abc import Hashable
from typing import Any

from gradcheck.bindings.abort import Abort
from gradcheck.bindings.graph import MAX_NODES, Build, build
from gradcheck.bindings.library import Library
from gradcheck.bindings.refusal import BackwardRefused, NoBackwardRule, backward_refusal
from gradcheck.bindings.tensor import Tensor, address
from gradcheck.model.case import Case
from gradcheck.model.errors import InvalidCase, Unsupported

#: Where ggml's backward builder lets no gradient through: op and source.
_NO_GRADIENT = frozenset(
    {("SGN", 0), ("STEP", 0), ("IM2COL", 0), ("IM2COL_BACK", 0)}
    | {("CPY", 1), ("GET_ROWS", 1), ("GET_ROWS_BACK", 1), ("ROPE", 1)}
)


def build_backward(library: Library, case: Case, *, accumulate: bool = False) -> Build:
    """The forward and the backward graph of a case.

    accumulate: every param gets an accumulator, to whose value its gradient is added, as micro-batches have it
    Raises InvalidCase where no graph can be made and Unsupported where ggml has no backward for it.
    """
    if not case.params:
        raise Unsupported("the case has no input that is differentiated")
    made = build(library, case)
    try:
        _add_backward(library, case, made, accumulate)
    except BaseException:
        # Also where a thread was parked in it: that one never touches the context again.
        made.free()
        raise
    return made


def _add_backward(library: Library, case: Case, made: Build, accumulate: bool) -> None:
    structure = _structure(made)
    if structure in library.no_rule:
        raise NoBackwardRule(library.no_rule[structure])
    nodes = made.nodes(made.forward)
    _demand_gradients(library, nodes, made.out)
    try:
        library.builder.run(lambda: _expand(library, case, made, accumulate))
    except Abort as abort:
        refusal = backward_refusal(abort, sorted({node.op for node in nodes}))
        if isinstance(refusal, NoBackwardRule):
            library.no_rule[structure] = str(refusal)
        raise refusal from None


def _expand(library: Library, case: Case, made: Build, accumulate: bool) -> None:
    ggml = library.ggml
    loss = made.out.pointer
    if (made.out.op, 0) in _NO_GRADIENT:
        # ggml lets no gradient through these, but as the loss itself they make it read one all the same.
        loss = ggml.ggml_reshape_4d(made.context, loss, *made.out.ne)
    graph = ggml.ggml_new_graph_custom(made.context, MAX_NODES, True)
    ggml.ggml_build_forward_expand(graph, loss)
    # By flag: ggml_set_loss insists on a scalar, the backward builder does not.
    loss.contents.flags |= ggml.GGML_TENSOR_FLAG_LOSS
    ggml.ggml_build_backward_expand(made.context, graph, _accumulators(library, made, graph) if accumulate else None)
    made.backward = graph
    for declared in case.params:
        gradient = ggml.ggml_graph_get_grad(graph, made.inputs[declared.name].pointer)
        made.gradients[declared.name] = Tensor(library, gradient) if gradient else None
    for name, accumulator in made.accumulators.items():
        found = made.gradients[name]
        if found is not None and found.address == accumulator.address:
            made.gradients[name] = None  # nothing is added to it
    cotangent = ggml.ggml_graph_get_grad_acc(graph, loss)
    if not cotangent:
        raise Unsupported(f"ggml makes no gradient for an output of type {made.out.type}")
    made.cotangent = Tensor(library, cotangent)


def _accumulators(library: Library, made: Build, graph: Any) -> Any:
    """What ggml_build_backward_expand takes: for every node of the forward graph a tensor, or NULL.

    As in ggml's own training loop (ggml_opt_build), a param has one, of its shape and in f32.
    """
    ggml, nodes = library.ggml, made.nodes(graph)
    array = (ctypes.POINTER(ggml.ggml_tensor) * len(nodes))()
    names = {tensor.address: name for name, tensor in made.inputs.items()}
    for index, node in enumerate(nodes):
        # The loss has one anyway: that takes the cotangent.
        if node.flags & ggml.GGML_TENSOR_FLAG_PARAM and not node.flags & ggml.GGML_TENSOR_FLAG_LOSS:
            array[index] = ggml.ggml_new_tensor_4d(made.context, library.type_ids["f32"], *node.ne)
            made.accumulators[names[node.address]] = Tensor(library, array[index])
    return array


def _structure(made: Build) -> Hashable:
    """All that decides whether ggml has backward rules: ops, types, params and who reads whom, not shapes."""
    tensors = made.tensors()
    index = {tensor.address: number for number, tensor in enumerate(tensors)}
    param = made.library.ggml.GGML_TENSOR_FLAG_PARAM
    rows = tuple(
        (
            tensor.op,
            tensor.type,
            tensor.flags & param,
            index[tensor.root],
            tuple(None if source is None else index[address(source)] for source in tensor.sources),
        )
        for tensor in tensors
    )
    return rows, index[made.out.address]


def _demand_gradients(library: Library, nodes: list[Tensor], out: Tensor) -> None:
    """Refuse what would end the process: a source that needs a gradient where no rule gives it one.

    ggml compares the shape of every such source with that of its gradient without looking whether there is
    one. This follows ggml_build_backward_expand: what needs a gradient, forwards; who gets one, backwards.
    """
    param = library.ggml.GGML_TENSOR_FLAG_PARAM
    needing = {node.address for node in nodes if node.flags & param}
    if not needing:
        raise InvalidCase("`out` depends on no input that is differentiated")
    sources = {node.address: [source and address(source) for source in node.sources] for node in nodes}
    for node in nodes:
        passed = (s for i, s in enumerate(sources[node.address]) if (node.op, i) not in _NO_GRADIENT)
        # No whole number is differentiated: what an index was computed from ends there.
        if node.type != "i32" and any(source in needing for source in passed):
            needing.add(node.address)
    given = set() if (out.op, 0) in _NO_GRADIENT else {out.address}
    for node in reversed(nodes):
        if node.address not in given:
            continue
        wanting = [(i, s) for i, s in enumerate(sources[node.address]) if s in needing]
        given.update(source for i, source in wanting if (node.op, i) not in _NO_GRADIENT)
        for i, source in wanting:
            if source not in given:
                name = Tensor(library, node.sources[i]).name
                raise BackwardRefused(
                    f"ggml has no gradient for `{name}` as source {i} of {node.op} and would read it all the "
                    "same; an input says that it is not differentiated with `param: <reason>`"
                )
