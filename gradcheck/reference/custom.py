"""ggml_map_custom1 and its kin with the callbacks that graphs can name: what those compute, in float64.

A source that is smaller than the output is repeated. How many tasks ggml makes of it changes nothing.
"""

from collections.abc import Callable
from typing import Any

from gradcheck.reference.binary import fits, tiled
from gradcheck.reference.dtypes import Array, type_name
from gradcheck.reference.tensor import Rule, Tensor, demand, like, new, over, shape4

#: The callbacks by name, as functions of the sources.
CALLBACKS: dict[str, Callable[..., Array]] = {
    "identity": lambda a: a,
    "double": lambda a: 2 * a,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


def _rule(out: Tensor, name: str, sources: tuple[Tensor, ...]) -> Rule:
    demand(name in CALLBACKS, f"no callback {name}; there are {', '.join(CALLBACKS)}")
    for source in sources:
        demand(fits(out, source), f"{source} cannot be repeated to {out}")
    return lambda *arrays: CALLBACKS[name](*(tiled(x, out.shape) for x in arrays))


def custom_4d(
    kind: str, ne0: int, ne1: int, ne2: int, ne3: int, args: tuple[Tensor, ...], fun: str, _n_tasks: int
) -> Tensor:
    """The callback of any number of tensors, as a tensor of a type and a shape of its own."""
    out = new(type_name(kind), shape4(ne0, ne1, ne2, ne3))
    return new(out.type, out.ne, _rule(out, fun, args), *args)


def custom_inplace(a: Tensor, args: tuple[Tensor, ...], fun: str, _n_tasks: int) -> Tensor:
    """The callback of a and any number of tensors, over a."""
    return over(a, _rule(a, fun, (a, *args)), *args)


def _map(make: Callable[..., Tensor], a: Tensor, rest: tuple[Tensor, ...], fun: str) -> Tensor:
    return make(a, _rule(a, fun, (a, *rest)), *rest)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "map_custom1": lambda a, fun, _n_tasks: _map(like, a, (), fun),
    "map_custom1_inplace": lambda a, fun, _n_tasks: _map(over, a, (), fun),
    "map_custom2": lambda a, b, fun, _n_tasks: _map(like, a, (b,), fun),
    "map_custom2_inplace": lambda a, b, fun, _n_tasks: _map(over, a, (b,), fun),
    "map_custom3": lambda a, b, c, fun, _n_tasks: _map(like, a, (b, c), fun),
    "map_custom3_inplace": lambda a, b, c, fun, _n_tasks: _map(over, a, (b, c), fun),
    "custom_4d": custom_4d,
    "custom_inplace": custom_inplace,
}
