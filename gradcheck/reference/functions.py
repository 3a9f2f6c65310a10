"""The functions and words that graphs use, by name: the reference's side of the graph language."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.attention import FUNCTIONS as ATTENTION
from gradcheck.reference.binary import FUNCTIONS as BINARY
from gradcheck.reference.conv import FUNCTIONS as CONV
from gradcheck.reference.copy import FUNCTIONS as COPY
from gradcheck.reference.create import FUNCTIONS as CREATE
from gradcheck.reference.custom import CALLBACKS
from gradcheck.reference.custom import FUNCTIONS as CUSTOM
from gradcheck.reference.dtypes import block_of, row_size, type_name
from gradcheck.reference.glu import FUNCTIONS as GLU
from gradcheck.reference.index import FUNCTIONS as INDEX
from gradcheck.reference.linalg import FUNCTIONS as LINALG
from gradcheck.reference.loss import FUNCTIONS as LOSS
from gradcheck.reference.matmul import FUNCTIONS as MATMUL
from gradcheck.reference.norm import FUNCTIONS as NORM
from gradcheck.reference.optimizer import FUNCTIONS as OPTIMIZER
from gradcheck.reference.pool import FUNCTIONS as POOL
from gradcheck.reference.recurrent import FUNCTIONS as RECURRENT
from gradcheck.reference.reduce import FUNCTIONS as REDUCE
from gradcheck.reference.resize import FUNCTIONS as RESIZE
from gradcheck.reference.resize import WORDS as RESIZE_WORDS
from gradcheck.reference.rope import FUNCTIONS as ROPE
from gradcheck.reference.softmax import FUNCTIONS as SOFTMAX
from gradcheck.reference.spatial import FUNCTIONS as SPATIAL
from gradcheck.reference.transposed import FUNCTIONS as TRANSPOSED
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
    **TRANSPOSED,
    **POOL,
    **SPATIAL,
    **RESIZE,
    **ATTENTION,
    **RECURRENT,
    **CREATE,
    **LOSS,
    **OPTIMIZER,
    **CUSTOM,
    "nelements": lambda a: a.elements,
    "nrows": lambda a: a.ne[1] * a.ne[2] * a.ne[3],
    "nbytes": lambda a: a.nbytes,
    "element_size": lambda a: block_of(a.type)[1],
    "type_size": lambda kind: block_of(type_name(kind))[1],
    "row_size": lambda kind, n: row_size(type_name(kind), n),
    "blck_size": lambda kind: block_of(type_name(kind))[0],
}
#: Enum words stand for themselves, but for those that graphs reckon with.
_WORDS = (
    "TYPE_", "UNARY_OP_", "GLU_OP_", "OP_POOL_", "ROPE_TYPE_", "TRI_TYPE_", "SORT_ORDER_", "PREC_", "HINT_",
    "N_TASKS_",
)  # fmt: skip


def call(name: str, values: list[Any]) -> Any:
    """Apply a function of ggml, given without its prefix. Raises Unsupported and InvalidCase."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"the NumPy reference has no {name} yet")
    try:
        _signature(function).bind(*values)
    except TypeError as error:
        raise InvalidCase(f"{name}: {error}") from None
    return function(*(_single(value) for value in values))


def word(name: str) -> str | int:
    """An enum word without its GGML_, or a callback, as itself or as its number. Raises KeyError for others."""
    if name in RESIZE_WORDS:
        return RESIZE_WORDS[name]
    if name in CALLBACKS or (name.isupper() and name.startswith(_WORDS)):
        return name
    raise KeyError(name)


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _single(value: Any) -> Any:
    """A number as ggml takes it: every one that is not whole is a float32 there."""
    return float(np.float32(value)) if isinstance(value, float) else value
