"""What a target holds of the quantised inputs: its bytes, as ggml reads them and, apart from it, as gguf does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcheck.model.case import Case, Input
from gradcheck.model.errors import Unsupported
from gradcheck.modes.bench import Array, Program, Values
from gradcheck.numerics.elements import unravel_ne

#: Both sides compute in float32, a few roundings each: in units of the largest magnitude in a block.
_ROUNDING = 8 * 2.0**-23


@dataclass(frozen=True)
class Held:
    """Inputs for the NumPy reference, and what was seen while they were read.

    values: the given ones; of a quantised input those that gguf reads in the target's bytes
    faults: where ggml reads other values in them than gguf does, a sentence for each input
    notes: where gguf cannot read them, and the values are those that ggml reads
    """

    values: Values
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def held_inputs(case: Case, program: Program, values: Values) -> Held:
    """Read the quantised inputs of a program, which has loaded `values`."""
    read: dict[str, NDArray[Any]] = dict(values)
    faults: list[str] = []
    notes: list[str] = []
    for declared in case.inputs:
        packed = program.packed(declared.name)
        if packed is None:
            continue
        from gradcheck.reference.quantised import block_of, dequantised  # a worker may never need the reference

        by_ggml = program.stored(declared.name)
        try:
            by_gguf = dequantised(declared.type, packed)
        except Unsupported as refusal:
            read[declared.name] = by_ggml
            notes.append(f"{refusal}: the values of {declared.name} are those that ggml reads")
            continue
        if by_gguf.size != by_ggml.size:
            faults.append(f"ggml reads {by_ggml.size} elements in {declared.name}, gguf {by_gguf.size}")
            continue
        read[declared.name] = by_gguf.reshape(by_ggml.shape)
        faults += _disagreement(declared, by_ggml, by_gguf, block_of(declared.type)[0])
    return Held(read, tuple(faults), tuple(notes))


def _disagreement(declared: Input, by_ggml: Array, by_gguf: NDArray[np.float32], block: int) -> list[str]:
    flat = by_ggml.reshape(-1)
    if np.array_equal(flat, by_gguf):
        return []
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(by_gguf.reshape(-1, block)).max(axis=1).repeat(block)
        alike = (np.abs(flat - by_gguf) <= _ROUNDING * size) | (flat == by_gguf) | (np.isnan(flat) & np.isnan(by_gguf))
    (wrong,) = np.nonzero(~alike)
    if not wrong.size:
        return []
    at = int(wrong[0])
    index = ",".join(map(str, unravel_ne(at, by_ggml.shape)))
    return [
        f"ggml and gguf read {declared.type} differently: {declared.name}[{index}] is {flat[at]:.9g} to ggml and "
        f"{by_gguf[at]:.9g} to gguf ({wrong.size} of {flat.size} elements differ)"
    ]
