"""A graph as rows of plain data: what `gradcheck list --graph` prints."""

from gradcheck.bindings.graph import Build
from gradcheck.bindings.tensor import Tensor, address
from gradcheck.model.graph import Description, Row


def describe(build: Build) -> Description:
    """The rows of every tensor that is computed or read, in the order of creation, and the output's index.

    A row is (op_desc, name, type, ne, nb, param, view_offset, source indices with -1 for an empty slot,
    op_params as hexadecimal words up to the last that is not 0). Backward nodes follow the forward ones.
    """
    graph = build.backward or build.forward
    wanted = _reachable([*build.nodes(graph), build.out])
    tensors = [tensor for tensor in build.tensors() if tensor.address in wanted]
    index = {tensor.address: number for number, tensor in enumerate(tensors)}
    param = build.library.ggml.GGML_TENSOR_FLAG_PARAM
    rows = tuple(_row(tensor, index, param) for tensor in tensors)
    return Description(rows, index[build.out.address], build.cost)


def _reachable(nodes: list[Tensor]) -> set[int]:
    """Nodes and what they read. A graph lists a node after its sources, so leaves are all that is added."""
    found = {node.address for node in nodes}
    for node in nodes:
        found.update(address(source) for source in node.sources if source is not None)
    return found


def _row(tensor: Tensor, index: dict[int, int], param: int) -> Row:
    struct = tensor.pointer.contents
    return (
        tensor.op,
        tensor.name,
        tensor.type,
        tensor.ne,
        tensor.nb,
        int(bool(tensor.flags & param)),
        int(struct.view_offs),
        tuple(-1 if source is None else index[address(source)] for source in tensor.sources),
        _words(list(struct.op_params)),
    )


def _words(words: list[int]) -> str:
    while words and words[-1] == 0:
        words.pop()
    return ",".join(f"{word & 0xFFFFFFFF:x}" for word in words)
