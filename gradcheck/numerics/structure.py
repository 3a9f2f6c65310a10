"""Which elements of a param cannot share an output, and so can be moved together.

An axis is separable when every output depends on at most one index along it. To find out, the elements whose
index along the axis has bit b set are moved, and then those that have it clear: when no output changes under
both, for any bit, all elements that an output depends on agree in every bit of their index, so they have the
same index, and the bits spell it. That takes 2 ceil(log2 n) moves for an axis of n. An elementwise op is separable
along all axes, soft_max along all but the first, mul_mat along all but the one that it contracts.

What moves no output at the probing step is taken not to matter; `directions.confirm` holds the outcome against
a derivative in a random dense direction.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gradcheck.numerics.elements import pick_elements

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: (rows of flat elements, their x) -> outputs, a row for each row: every row of elements is moved in a copy of
#: its own, all other elements stay. None for all elements in their order. The result is valid until the next call.
Evaluate = Callable[[Indices | None, NDArray[np.float32]], NDArray[np.float32]]


#: How often probes are repeated with other moves, where some outputs changed for others alone.
_PASSES = 3


@dataclass(frozen=True)
class Structure:
    """Separable axes (of the NumPy shape), and for each of them the index that every output belongs to.

    owners: axis -> (outputs,) index along it, -1 for an output that no probe changed
    probes: forward evaluations spent
    """

    shape: tuple[int, ...]
    owners: dict[int, Indices]
    probes: int


@dataclass(frozen=True)
class Moves:
    """Elements to be moved, a row at a time, and whose each output is.

    elements: (moves, together) flat indices into the param
    owner: (outputs,) the column whose element an output depends on, `together` for none; None where a single
        element is moved and every output is its own
    """

    elements: Indices
    owner: Indices | None

    @property
    def together(self) -> int:
        """How many elements move at a time."""
        return int(self.elements.shape[1])

    @cached_property
    def named(self) -> bool:
        """Whether the elements must be named: they need not be where every move is of all, in their order."""
        rows, together = self.elements.shape
        return rows != 1 or not np.array_equal(self.elements[0], np.arange(together))


def dense(shape: tuple[int, ...], limit: int, rng: Generator) -> Moves:
    """Every element on its own, or a sample of at most `limit`."""
    return Moves(pick_elements(shape, limit, rng)[:, None], None)


def structured(structure: Structure, limit: int, rng: Generator) -> Moves:
    """All elements along the separable axes at once, for each index along the others (at most `limit` of those)."""
    shape, owners = structure.shape, structure.owners
    if not owners:
        return dense(shape, limit, rng)
    separable = sorted(owners)
    others = [axis for axis in range(len(shape)) if axis not in owners]
    flat = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    grid = flat.transpose(*others, *separable).reshape(
        math.prod(shape[axis] for axis in others), math.prod(shape[axis] for axis in separable)
    )
    chosen = pick_elements(tuple(shape[axis] for axis in others), limit, rng)
    return Moves(grid[chosen], _owner(structure, separable, grid.shape[1]))


def _owner(structure: Structure, separable: list[int], together: int) -> Indices:
    columns = np.zeros_like(next(iter(structure.owners.values())))
    nobody = np.zeros(columns.shape, dtype=np.bool_)
    for axis in separable:
        index = structure.owners[axis]
        columns = columns * structure.shape[axis] + index
        nobody |= index < 0
    return np.where(nobody, together, columns)


def probe(
    evaluate: Evaluate, x: NDArray[np.float32], shape: tuple[int, ...], step: float, per_call: int, rng: Generator
) -> Structure:
    """Find the separable axes of a param.

    x: the param, flat, of NumPy shape `shape`
    step: the least distance by which an element is moved; at most twice that is used
    per_call: rows for each call of `evaluate`
    """
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if not axes:
        return Structure(shape, {}, 0)
    sets = [
        _Set(axis, bit, value) for axis in axes for bit in range((shape[axis] - 1).bit_length()) for value in (0, 1)
    ]
    # Unequal moves: an output must not stay the same because what it depends on moved alike, as in soft_max. And up or
    # down at random, but always alike: what only one of them would show is then seen by all probes or by none.
    sizes, signs = rng.uniform(1.0, 2.0, x.size), rng.choice([-1.0, 1.0], x.size)
    moved = (x + step * sizes * signs).astype(np.float32)
    base = evaluate(None, x[None, :])[0].copy()
    owners: dict[int, Indices] = {}
    spent = 1
    for passes in range(_PASSES):
        changes = _changes(evaluate, x, moved, base, shape, sets, per_call)
        spent += len(changes)
        found = _spelled(changes, axes, shape)
        owners = found if passes == 0 else _completed(owners, found)
        unowned = _unowned(owners, base.shape)
        if not unowned.any():
            break
        # What did not change may have cancelled by chance: among a million outputs that is no rarity. The next moves
        # are no larger, so that nothing gets across a kink that did not before.
        sizes = rng.uniform(1.0, sizes)
        moved = (x + step * sizes * signs).astype(np.float32)
        other = evaluate(None, moved[None, :])[0]
        spent += 1
        if not (unowned & (other != base)).any():
            break
    return Structure(shape, owners, spent)


def _spelled(changes: list[Mask], axes: list[int], shape: tuple[int, ...]) -> dict[int, Indices]:
    owners: dict[int, Indices] = {}
    start = 0
    for axis in axes:
        count = 2 * (shape[axis] - 1).bit_length()
        owner = _spell(changes[start : start + count], shape[axis])
        start += count
        if owner is not None:
            owners[axis] = owner
    return owners


def _completed(owners: dict[int, Indices], found: dict[int, Indices]) -> dict[int, Indices]:
    """Owners with those of another pass where there was none; an axis on which the two are at odds is not separable."""
    return {
        axis: np.where(owner < 0, found[axis], owner)
        for axis, owner in owners.items()
        if axis in found and not ((owner >= 0) & (found[axis] >= 0) & (owner != found[axis])).any()
    }


def _unowned(owners: dict[int, Indices], outputs: tuple[int, ...]) -> Mask:
    """Outputs that no probe changed."""
    unowned = np.zeros(outputs, dtype=np.bool_)
    for owner in owners.values():
        unowned |= owner < 0
    return unowned


@dataclass(frozen=True)
class _Set:
    """The elements whose index along an axis has a bit set (value 1) or clear (0)."""

    axis: int
    bit: int
    value: int

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """Whether an element is in the set, of a shape that broadcasts to `shape`."""
        along = np.arange(shape[self.axis]) >> self.bit & 1
        mask: Mask = (along == self.value).reshape([-1 if a == self.axis else 1 for a in range(len(shape))])
        return mask


def _changes(
    evaluate: Evaluate,
    x: NDArray[np.float32],
    moved: NDArray[np.float32],
    base: NDArray[np.float32],
    shape: tuple[int, ...],
    sets: list[_Set],
    per_call: int,
) -> list[Mask]:
    """Which outputs change from `base` when the elements of each set are moved."""
    results: list[Mask] = []
    for start in range(0, len(sets), per_call):
        group = sets[start : start + per_call]
        rows = [np.where(one.mask(shape), moved.reshape(shape), x.reshape(shape)).ravel() for one in group]
        results += [outputs != base for outputs in evaluate(None, np.stack(rows))]
    return results


def _spell(changes: list[Mask], size: int) -> Indices | None:
    """The index of each output, -1 for one that never changed; None where an output depends on several."""
    index = np.zeros(changes[0].shape, dtype=np.int64)
    always, ever = np.ones(index.shape, dtype=np.bool_), np.zeros(index.shape, dtype=np.bool_)
    for bit in range(len(changes) // 2):
        clear, set_ = changes[2 * bit], changes[2 * bit + 1]
        if (clear & set_).any():
            return None
        index |= set_.astype(np.int64) << bit
        always &= clear | set_
        ever |= clear | set_
    # An output that answers for some bits and not for others hides something; no index can be trusted then.
    if (always != ever).any() or (index[always] >= size).any():
        return None
    return np.where(always, index, -1)
