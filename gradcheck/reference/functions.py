"""The functions and words that graphs use, by name: the reference's side of the graph language."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.binary import FUNCTIONS as BINARY
from gradcheck.reference.conv import FUNCTIONS as CONV
from gradcheck.reference.copy import FUNCTIONS as COPY
from gradcheck.reference.dtypes import SIZES, type_name
from gradcheck.reference.glu import FUNCTIONS as GLU
from gradcheck.reference.index import FUNCTIONS as INDEX
from gradcheck.reference.linalg import FUNCTIONS as LINALG
from gradcheck.reference.loss import FUNCTIONS as LOSS
from gradcheck.reference.matmul import FUNCTIONS as MATMUL
from gradcheck.reference.norm import FUNCTIONS as NORM
from gradcheck.reference.optimizer import FUNCTIONS as OPTIMIZER
from gradcheck.reference.pool import FUNCTIONS as POOL
from gradcheck.reference.reduce import FUNCTIONS as REDUCE
from gradcheck.reference.rope import FUNCTIONS as ROPE
from gradcheck.reference.softmax import FUNCTIONS as SOFTMAX
from gradcheck.reference.tensor import contiguous
from gradcheck.reference.unary import FUNCTIONS as UNARY
from gradcheck.reference.views import FUNCTIONS as VIEWS

#: The families, and the numbers that can be asked of tensors and types.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **UNARY,
    **BINARY,
    **GLU,
    **REDUCE,
    **NORM,
    **SOFTMAX,
    **ROPE,
    **MATMUL,
    **LINALG,
    **VIEWS,
    **COPY,
    **INDEX,
    **CONV,
    **POOL,
    **LOSS,
    **OPTIMIZER,
    "nelements": lambda a: a.elements,
    "nrows": lambda a: a.ne[1] * a.ne[2] * a.ne[3],
    "nbytes": lambda a: sum((n - 1) * step for n, step in zip(a.ne, a.nb, strict=True)) + SIZES[a.type],
    "element_size": lambda a: SIZES[a.type],
    "type_size": lambda kind: SIZES[type_name(kind)],
    "row_size": lambda kind, n: contiguous(type_name(kind), (n, 1, 1, 1))[1],
    "blck_size": lambda _kind: 1,
}
#: Enum words stand for themselves.
_WORDS = (
    "TYPE_", "UNARY_OP_", "GLU_OP_", "OP_POOL_", "ROPE_TYPE_", "TRI_TYPE_", "SORT_ORDER_", "PREC_", "HINT_",
    "SCALE_MODE_", "SCALE_FLAG_",
)  # fmt: skip


def call(name: str, values: list[Any]) -> Any:
    """Apply a function of ggml, given without its prefix. Raises Unsupported and InvalidCase."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"the NumPy reference has no {name} yet")
    try:
        inspect.signature(function).bind(*values)
    except TypeError as error:
        raise InvalidCase(f"{name}: {error}") from None
    return function(*(_single(value) for value in values))


def word(name: str) -> str:
    """An enum word without its GGML_, as itself. Raises KeyError where it cannot be one."""
    if name.isupper() and name.startswith(_WORDS):
        return name
    raise KeyError(name)


def _single(value: Any) -> Any:
    """A number as ggml takes it: every one that is not whole is a float32 there."""
    return float(np.float32(value)) if isinstance(value, float) else value
