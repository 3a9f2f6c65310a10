"""A graph as a table for people: a line a tensor, in the order in which ggml computes them."""

from collections.abc import Sequence

from gradcheck.model.case import Value

#: A row of `Outcome.tensors`: op, name, type, ne, nb, param, view offset, sources, op params.
Row = Sequence[Value]


def graph_lines(tensors: Sequence[Row], out: int, start: int = 0) -> list[str]:
    """Aligned lines of `tensors[start:]`: number, op, type, shape, sources and name; `out` is marked."""
    rows: list[tuple[str, ...]] = [("#", "op", "type", "ne", "from", "name")]
    rows += [_cells(index, tensors[index], out) for index in range(start, len(tensors))]
    return aligned(rows, right=(0,))


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines whose columns stand below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def shape(ne: Value) -> str:
    """`[16, 8, 1, 1]` as `16x8`: ggml's order, without the ones at the end."""
    sizes = [str(size) for size in ne] if isinstance(ne, tuple) else [str(ne)]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    return "x".join(sizes)


def _cells(index: int, row: Row, out: int) -> tuple[str, ...]:
    op, name, dtype, ne, _nb, param, offset, sources, _params = row
    origins = ", ".join(f"#{s}" for s in sources if s != -1) if isinstance(sources, tuple) else ""
    marks = [str(name)] if name else []
    marks += ["(param)"] if param else []
    marks += ["(out)"] if index == out and name != "out" else []
    marks += [f"at byte {offset}"] if offset else []
    operation = "input" if op == "NONE" else str(op)
    return (str(index), operation, str(dtype), shape(ne), origins, " ".join(marks))
