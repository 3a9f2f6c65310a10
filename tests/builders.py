"""Cases and the values of their inputs, as tests write them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input, Value
from gradcheck.model.place import Place
from gradcheck.reference.tensor import shape4

Ne = tuple[int, ...]


@dataclass(frozen=True)
class Typed:
    """An input that is no f32 param. A shape has one to four dimensions, in ggml's order."""

    type: str
    ne: Ne
    param: bool = True


#: A bare shape is that of an f32 param.
InputSpec = Ne | Typed


def make_case(graph: str, scope: Mapping[str, Value] | None = None, /, **inputs: InputSpec) -> Case:
    """A case whose name, which random numbers depend on, tells the shapes of its inputs."""
    made = tuple(_input(name, spec) for name, spec in inputs.items())
    return Case(
        op="OP",
        name=",".join(f"{i.name}={list(i.ne)}" for i in made),
        vars=(),
        scope=tuple((scope or {}).items()),
        inputs=made,
        graph=graph,
        place=Place("test.yaml", 1),
    )


def _input(name: str, spec: InputSpec) -> Input:
    given = spec if isinstance(spec, Typed) else Typed("f32", spec)
    return Input(name, given.type, shape4(*given.ne), param=given.param)


def sample(case: Case, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Values in [-1, 1] for every input, in NumPy's order."""
    random = np.random.default_rng(seed)
    return {i.name: random.uniform(-1, 1, tuple(reversed(i.ne))).astype(np.float32) for i in case.inputs}
