"""Planted faults around quantised types: ggml reads a block wrongly, a kernel does, a kernel rounds wrongly."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.bindings.dtypes import decode
from gradcheck.bindings.library import load
from gradcheck.cases import Selection, select
from gradcheck.model.case import Case
from gradcheck.model.job import NUMPY, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Array, Bench, Device, Program
from gradcheck.modes.eval import run
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.quantised import block_of
from tests.faults.faulty import FaultyDevice, FaultyProgram

Bytes = NDArray[np.uint8]
BlockFault = Callable[[Bytes], None]
#: The block that is read wrongly, in the middle of the input.
AT = 7


@pytest.fixture(scope="module")
def shipped() -> dict[str, Case]:
    return {case.id: case for case in select(Selection(), "eval")}


def evaluated(case: Case, target: object) -> Outcome:
    return run(case, Bench(cast(Device, target), ReferenceDevice, Settings(reference=NUMPY), time.perf_counter))


def scale_off_by_one(at: int) -> BlockFault:
    """The f16 that begins at a byte of the block becomes its neighbour."""

    def fault(blocks: Bytes) -> None:
        blocks[AT, at : at + 2] = (blocks[AT, at : at + 2].copy().view(np.uint16) + 1).view(np.uint8)

    return fault


def swapped_nibbles(at: int) -> BlockFault:
    """One byte with two quants is read the wrong way round; it is made one in which that is seen."""

    def fault(blocks: Bytes) -> None:
        byte = int(blocks[AT, at])
        assert byte & 15 != byte >> 4
        blocks[AT, at] = (byte & 15) << 4 | byte >> 4

    return fault


def the_next_block(blocks: Bytes) -> None:
    blocks[AT] = blocks[AT + 1]


class MisreadingProgram(FaultyProgram):
    """Reads wrongly what it holds, as a wrong to_float would."""

    def __init__(self, program: Program, kind: str, fault: BlockFault) -> None:
        super().__init__(program, None, None)
        self._kind, self._fault = kind, fault

    def misread(self, name: str) -> Array:
        """A quantised input with the fault in it."""
        blocks = self._program.packed(name)
        assert blocks is not None
        blocks = blocks.copy().reshape(-1, block_of(self._kind)[1])
        self._fault(blocks)
        return decode(load(), self._kind, blocks).astype(np.float64).reshape(self._program.stored(name).shape)

    def stored(self, name: str) -> Array:
        right: Array = self._program.stored(name)
        return right if self._program.packed(name) is None else self.misread(name)


class MisreadingKernel(MisreadingProgram):
    """MUL_MAT with one block of `a` read wrongly: the output moves by b times the difference."""

    def forward(self) -> Array:
        y: Array = self._program.forward()
        a, b = self._program.stored("a"), self._program.stored("b")
        return y + b @ (self.misread("a") - a).swapaxes(-1, -2)

    def stored(self, name: str) -> Array:
        right: Array = self._program.stored(name)
        return right


@dataclass(frozen=True)
class MisreadingDevice:
    device: Device
    kind: str
    fault: BlockFault
    program: type[MisreadingProgram] = MisreadingProgram

    @property
    def name(self) -> str:
        return self.device.name

    def open(self, case: Case, *, backward: bool = False) -> MisreadingProgram:
        return self.program(self.device.open(case, backward=backward), self.kind, self.fault)


ROWS = "GET_ROWS(type={},n=256,m=5,r=4,be1=7,be2=1,v=0)"
READINGS = {
    "the scale of q4_0": ("q4_0", scale_off_by_one(0)),
    "the scale of q4_K": ("q4_K", scale_off_by_one(0)),
    "the minimum's scale of q4_K": ("q4_K", scale_off_by_one(2)),
    "the scale of q6_K": ("q6_K", scale_off_by_one(208)),
    "the nibbles of q4_0": ("q4_0", swapped_nibbles(5)),
    "the nibbles of iq4_nl": ("iq4_nl", swapped_nibbles(5)),
    "another block of q8_0": ("q8_0", the_next_block),
    "another block of mxfp4": ("mxfp4", the_next_block),
}


@pytest.mark.parametrize("name", READINGS)
def test_a_block_that_ggml_reads_wrongly_is_caught(name: str, cpu: Device, shipped: dict[str, Case]) -> None:
    kind, fault = READINGS[name]
    case = shipped[ROWS.format(kind)]
    assert evaluated(case, cpu).status is Status.PASS
    outcome = evaluated(case, MisreadingDevice(cpu, kind, fault))
    assert outcome.status is Status.FAIL
    assert outcome.reason.startswith(f"ggml and gguf read {kind} differently: a[")


@pytest.mark.parametrize("kind", ["q4_0", "q8_0", "q4_K"])
def test_a_block_that_mul_mat_reads_wrongly_is_caught(kind: str, cpu: Device, shipped: dict[str, Case]) -> None:
    case = shipped[f"MUL_MAT(type_a={kind},type_b=f32,m=16,n=16,k=256,bs=[1,1],nr=[1,1],per=[0,1,2,3],k_v=0,o=1)"]
    assert evaluated(case, cpu).status is Status.PASS
    assert evaluated(case, MisreadingDevice(cpu, kind, the_next_block, MisreadingKernel)).status is Status.FAIL


def truncated(y: Array, x: Array) -> Array:
    """Rows of q8_0 whose quants were cut off rather than rounded."""
    scale = np.abs(x.reshape(-1, 32)).max(axis=1, keepdims=True) / 127
    held: Array = np.trunc(x.reshape(-1, 32) / scale) * scale.astype(np.float16)
    return held.reshape(y.shape)


class TruncatingProgram(FaultyProgram):
    def forward(self) -> Array:
        return truncated(self._program.forward(), self._program.stored("src"))


class TruncatingDevice(FaultyDevice):
    def open(self, case: Case, *, backward: bool = False) -> FaultyProgram:
        return TruncatingProgram(self.device.open(case, backward=backward), None, None)


def test_quants_that_are_cut_off_are_caught(cpu: Device, shipped: dict[str, Case]) -> None:
    case = shipped[
        "CPY(type_src=f32,type_dst=q8_0,ne_src=[256,4,4,4],permute_src=[0,0,0,0],permute_dst=[0,0,0,0],_src_transpose=0)"
    ]
    assert evaluated(case, cpu).status is Status.PASS
    assert evaluated(case, TruncatingDevice(cpu)).status is Status.FAIL
