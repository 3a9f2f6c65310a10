"""Where wrong elements lie, in ggml's order and in the words of kernels: rows, tails, a thread's share."""

import math
from dataclasses import dataclass

import numpy as np

from gradcheck.numerics.diagnosis.compared import Compared, Indices, Mask

#: Widths of vectors and blocks whose tails are known by name.
_WIDTHS = (64, 32, 16, 8, 4)
#: Threads among whom ggml deals out the rows of a tensor.
_THREADS = range(2, 17)
_SLICES = ("column", "row", "plane", "batch")
#: Elements, or indices along an axis, that are listed one by one.
_LISTED = 4


@dataclass(frozen=True)
class Place:
    """words: "everywhere", "in the last row (i1 = 5)"...; aside: what lies there, "" for nothing special.

    exact: whether all of the place, and nothing else, is wrong
    """

    words: str
    aside: str = ""
    exact: bool = True


@dataclass(frozen=True)
class _Span:
    """The wrong indices along one axis. kind: all, one, range, stride or list."""

    kind: str
    members: Indices
    step: int = 1

    def index(self) -> str:
        """As a part of an index expression."""
        first, last = int(self.members[0]), int(self.members[-1])
        if self.kind == "all":
            return "*"
        if self.kind == "stride":
            return f"{first}..{last} by {self.step}"
        if self.kind == "list":
            return "|".join(map(str, self.members))
        return str(first) if first == last else f"{first}..{last}"


def locate(param: Compared, inside: Mask, outside: Mask, allowance: float) -> Place:
    """The simplest place that holds all elements of `inside` and none of `outside`.

    allowance: elements of `outside` that may be in it, as a share of its elements; elements in neither are free
    """
    judged = param.elements.size
    if np.count_nonzero(outside) <= allowance * judged:
        return Place("everywhere")
    count = int(np.count_nonzero(inside))
    if count == 1:
        return Place(f"at {_position(param, int(np.flatnonzero(inside)[0]))} alone")
    spans = [_span(param.index[axis][inside], param.index[axis], param.shape[axis]) for axis in param.axes]
    if _fits(_box(param, spans), outside, allowance):
        return _boxed(param, _widened(param, spans, outside, allowance), inside)
    for place, mask in _by_memory(param, inside):
        if _fits(mask, outside, allowance):
            return place
    if count <= _LISTED:
        return Place("at " + ", ".join(_position(param, int(at)) for at in np.flatnonzero(inside)))
    box = bounds(param, inside)
    scattered = "at scattered elements"
    return Place(scattered if set(box) <= set("[*, ]") else f"{scattered} within {box}", exact=False)


def bounds(param: Compared, inside: Mask) -> str:
    """The bounding box as an index expression in ggml's order: [0..3, 7, *, *]."""
    spans = []
    for axis in param.axes:
        low, high = int(param.index[axis][inside].min()), int(param.index[axis][inside].max())
        whole = (low, high) == (0, param.shape[axis] - 1)
        spans.append(_Span("all" if whole else "range", np.arange(low, high + 1)))
    return _expression(spans)


def _position(param: Compared, at: int) -> str:
    return f"[{', '.join(str(int(axis[at])) for axis in reversed(param.index))}]"


def _expression(spans: list[_Span]) -> str:
    return f"[{', '.join(span.index() for span in reversed(spans))}]"


def _fits(mask: Mask, outside: Mask, allowance: float) -> bool:
    return bool(np.count_nonzero(mask & outside) <= allowance * np.count_nonzero(mask))


def _span(wrong: Indices, judged: Indices, size: int) -> _Span:
    members = np.flatnonzero(np.bincount(wrong, minlength=size)).astype(np.int64)
    known = np.flatnonzero(np.bincount(judged, minlength=size)).astype(np.int64)
    if members.size == known.size:
        return _Span("all", members)
    if members.size == 1:
        return _Span("one", members)
    between = known[(known >= members[0]) & (known <= members[-1])]
    if members.size == between.size:
        return _Span("range", members)
    step = int(np.gcd.reduce(np.diff(members)))
    if step > 1 and members.size > 2 and members.size == np.count_nonzero((between - members[0]) % step == 0):
        return _Span("stride", members, step)
    if members.size <= _LISTED:
        return _Span("list", members)
    return _Span("range", np.arange(members[0], members[-1] + 1))


def _widened(param: Compared, spans: list[_Span], outside: Mask, allowance: float) -> list[_Span]:
    """Spans that reach as far as nothing speaks against it: not all elements are judged, or told from right ones."""
    for axis in param.axes:
        if spans[axis].kind == "all":
            continue
        members, size = spans[axis].members, param.shape[axis]
        wider = [_Span("all", np.arange(size))]
        if spans[axis].kind == "range":
            wider += [_Span("range", np.arange(members[0], size)), _Span("range", np.arange(members[-1] + 1))]
        for span in wider:
            tried = [*spans[:axis], span, *spans[axis + 1 :]]
            if _fits(_box(param, tried), outside, allowance):
                spans = tried
                break
    return spans


def _box(param: Compared, spans: list[_Span]) -> Mask:
    mask = np.ones(param.elements.size, dtype=np.bool_)
    for axis, span in zip(param.axes, spans, strict=True):
        if span.kind != "all":
            chosen = np.zeros(param.shape[axis], dtype=np.bool_)
            chosen[span.members] = True
            mask &= chosen[param.index[axis]]
    return mask


def _boxed(param: Compared, spans: list[_Span], inside: Mask) -> Place:
    limited = [axis for axis, span in zip(param.axes, spans, strict=True) if span.kind != "all"]
    single = all(span.kind in ("one", "all") for span in spans)
    # A single row or plane is that first of all, and a part of a row is no thread's.
    share = "" if single or spans[-1].kind != "all" else _share_of_a_thread(param, inside)
    if len(limited) == 1:
        axis = limited[0]
        words = _along_one_axis(param.along(axis), spans[axis], param.shape[axis], len(param.shape) - 1 - axis)
        tail = _tail(spans[axis], param.shape[axis]) if axis == len(param.shape) - 1 else ""
        return Place(words, tail or share)
    return Place(f"at {_expression(spans)}", share)


def _along_one_axis(name: str, span: _Span, size: int, order: int) -> str:
    first, last = int(span.members[0]), int(span.members[-1])
    piece = _SLICES[order] if order < len(_SLICES) else "slice"
    if span.kind == "one":
        which = "the last " if last == size - 1 else "the first " if first == 0 else ""
        return f"in {which}{piece} ({name} = {first})" if which else f"in {piece} {name} = {first}"
    if span.kind == "stride":
        ordinal = {2: "2nd", 3: "3rd"}.get(span.step, f"{span.step}th")
        return f"in every {ordinal} {piece} ({name} = {first}, {first + span.step}, ...)"
    if span.kind == "list":
        return f"where {name} is {', '.join(map(str, span.members[:-1]))} or {last}"
    if last == size - 1:
        return f"where {name} >= {first}"
    return f"where {name} <= {last}" if first == 0 else f"where {name} is {first} to {last}"


def _tail(span: _Span, size: int) -> str:
    """What a loop over whole vectors leaves over, where the wrong columns are exactly that."""
    first, last = int(span.members[0]), int(span.members[-1])
    if span.kind not in ("one", "range") or last != size - 1 or first == 0:
        return ""
    width = next((w for w in _WIDTHS if first == size - size % w and first < size), None)
    if width is not None:
        return f"the tail behind the last whole {width} of each row"
    return "the second half of each row" if 2 * first == size else ""


def _share_of_a_thread(param: Compared, inside: Mask) -> str:
    """Which thread's rows these are, where ggml deals out equal runs of rows."""
    if len(param.shape) < 2 or not param.shape[-1]:
        return ""
    rows = math.prod(param.shape[:-1])
    row = param.elements // param.shape[-1]
    judged, hit = (np.bincount(r, minlength=rows) > 0 for r in (row, row[inside]))
    first, last = int(np.argmax(hit)), rows - 1 - int(np.argmax(hit[::-1]))
    # Rows that were not judged may be wrong as well.
    if first == last or (judged & ~hit)[first : last + 1].any():
        return ""
    for threads in _THREADS:
        each = -(-rows // threads)
        if first % each == 0 and last == min(first + each, rows) - 1:
            return f"the rows of thread {first // each + 1} of {threads}"
    return ""


def _by_memory(param: Compared, inside: Mask) -> list[tuple[Place, Mask]]:
    """Places that are no boxes: triangles, runs and strides in memory."""
    found = []
    if len(param.shape) > 1:
        i0, i1 = param.index[-1], param.index[-2]
        for sign, mask in (("=", i0 == i1), (">", i0 > i1), ("<", i0 < i1), (">=", i0 >= i1), ("<=", i0 <= i1)):
            if not (inside & ~mask).any():
                found.append((Place(f"where i0 {sign} i1"), mask))
    flat = param.elements
    rows = flat // max(1, param.shape[-1])
    if len(param.shape) > 1:
        first, last = int(rows[inside].min()), int(rows[inside].max())
        words = f"in rows {first} to {last} of {math.prod(param.shape[:-1])} (rows counted through all of i1, i2, i3)"
        found.append((Place(words, _share_of_a_thread(param, inside)), (rows >= first) & (rows <= last)))
    first, last = int(flat[inside].min()), int(flat[inside].max())
    where = f"from element {first} on in memory" if last == flat.max() else f"at elements {first} to {last} in memory"
    found.append((Place(where), (flat >= first) & (flat <= last)))
    step = int(np.gcd.reduce(flat[inside] - first))
    if step > 1:
        mask = (flat >= first) & (flat <= last) & ((flat - first) % step == 0)
        found.append((Place(f"at every {step} elements in memory, from element {first} on"), mask))
    return found
