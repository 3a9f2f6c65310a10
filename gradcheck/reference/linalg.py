"""Triangles, diagonals and triangular systems."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import Tensor, demand, like, new

#: By ggml's number.
_TRIANGLES = ("UPPER_DIAG", "UPPER", "LOWER_DIAG", "LOWER")


def tri(a: Tensor, kind: int | str) -> Tensor:
    """A triangle of each matrix, 0 elsewhere: TRI_TYPE_UPPER_DIAG (0) keeps i0 >= i1, UPPER (1) i0 > i1,
    LOWER_DIAG (2) i0 <= i1, LOWER (3) i0 < i1.
    """
    name = kind.removeprefix("TRI_TYPE_") if isinstance(kind, str) else _TRIANGLES[kind] if 0 <= kind < 4 else ""
    if name not in _TRIANGLES:
        raise InvalidCase(f"tri: there is no triangle {kind!r}")
    rows, columns = np.arange(a.ne[1])[:, None], np.arange(a.ne[0])[None, :]
    inside = columns > rows if name.startswith("UPPER") else columns < rows
    kept = inside | ((columns == rows) & name.endswith("_DIAG"))
    return like(a, lambda x: np.where(kept, x, 0.0))


def diag(a: Tensor) -> Tensor:
    """Each row as the diagonal of a matrix: a [n, 1, b, c], out [n, n, b, c]."""
    demand(a.ne[1] == 1, f"diag: {a} has more than one row")
    n = a.ne[0]
    return new(a.type, (n, n, a.ne[2], a.ne[3]), lambda x: np.where(np.eye(n, dtype=bool), x, 0.0), a)


def solve_tri(a: Tensor, b: Tensor, left: int, lower: int, unit: int) -> Tensor:
    """The X with A X = B, A the lower triangle of `a`: a [n, n], b and out [k, n]. ggml knows no other form."""
    if not (left and lower and not unit):
        raise Unsupported("the NumPy reference solves lower triangular systems from the left only, as ggml does")
    demand(a.ne[0] == a.ne[1] == b.ne[1] and a.ne[2:] == b.ne[2:], f"solve_tri: {a} and {b} do not fit")

    def rule(x: Array, y: Array) -> Array:
        return np.asarray(np.linalg.solve(np.tril(x), y), dtype=np.float64)

    return new("f32", b.ne, rule, a, b)


FUNCTIONS: dict[str, Callable[..., Any]] = {"tri": tri, "diag": diag, "solve_tri": solve_tri}
