"""Quantised types as ggml and, apart from it, gguf read and write them; eval of cases that have them."""

import contextlib
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.bindings.devices import Device
from gradcheck.bindings.dtypes import decode, encode
from gradcheck.bindings.library import load
from gradcheck.cases import Selection, select
from gradcheck.model.case import Case
from gradcheck.model.errors import Unsupported
from gradcheck.model.job import NUMPY, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes.bench import Bench
from gradcheck.modes.eval import run
from gradcheck.reference import ReferenceDevice
from gradcheck.reference.quantised import block_of, check_decoder, check_quantiser, dequantised, quantised

ROW = 256  # elements: whole blocks of every type


def _types() -> list[str]:
    """Every quantised type that ggml can read."""
    ggml, ids = load().ggml, load().type_ids
    return [
        name
        for name, number in ids.items()
        if ggml.ggml_is_quantized(number) and ggml.ggml_get_type_traits(number).contents.to_float
    ]


def _known(check: Callable[[str], None]) -> list[str]:
    """Those of them that gguf passes."""
    known = []
    for kind in _types():
        with contextlib.suppress(Unsupported):
            check(kind)
            known.append(kind)
    return known


READ, WRITTEN = _known(check_decoder), _known(check_quantiser)


def test_gguf_has_the_types() -> None:
    assert {"q4_0", "q8_0", "q2_K", "q6_K", "iq1_s", "iq4_xs", "tq1_0", "mxfp4", "nvfp4"} <= set(READ)
    assert {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0", "mxfp4"} <= set(WRITTEN)


@pytest.mark.parametrize("kind", _types())
def test_a_block_has_the_same_size(kind: str) -> None:
    ggml, number = load().ggml, load().type_ids[kind]
    assert block_of(kind) == (ggml.ggml_blck_size(number), ggml.ggml_type_size(number))


@pytest.mark.parametrize("kind", READ)
def test_both_read_the_same_in_any_bytes(kind: str) -> None:
    """Random bytes reach every pattern of quants and every scale, those that are not finite included."""
    elements, nbytes = block_of(kind)
    raw = np.random.default_rng(1).integers(0, 256, 1000 * nbytes, dtype=np.uint8)
    got, want = decode(load(), kind, raw).reshape(-1, elements), dequantised(kind, raw).reshape(-1, elements)
    size = np.where(np.isfinite(want), np.abs(want), 0).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        alike = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= 2.0**-20 * size)
    assert alike.all()
    assert np.isfinite(want).mean() > 0.5


def _arrays() -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(2)
    x = random.uniform(-1, 1, (64, ROW)).astype(np.float32)
    return {
        "uniform": x,
        "zeros": np.zeros((4, ROW), np.float32),
        "constant": np.full((4, ROW), -0.7, np.float32),
        "positive": np.abs(x),
        "both signs": np.concatenate((x[:, :128], -x[:, :128]), axis=1),
        "tiny": x * np.float32(1e-9),
        "too large for f16": x * np.float32(1e7),
        "a spike": np.where(random.random(x.shape) < 0.01, 100 * x, 1e-3 * x).astype(np.float32),
        "halves": random.integers(-8, 9, x.shape).astype(np.float32),
    }


@pytest.mark.parametrize("kind", WRITTEN)
def test_both_write_the_same_values(kind: str) -> None:
    for name, x in _arrays().items():
        got = decode(load(), kind, encode(load(), kind, x, ROW))
        want = dequantised(kind, quantised(kind, x.reshape(-1)))
        assert np.array_equal(got, want, equal_nan=True), name


@pytest.fixture(scope="module")
def shipped() -> dict[str, Case]:
    return {case.id: case for case in select(Selection(), "eval")}


def _eval(cpu: Device, case: Case) -> Outcome:
    return run(case, Bench(cpu, ReferenceDevice, Settings(reference=NUMPY), time.perf_counter))


COPY = "CPY(type_src={},type_dst={},ne_src=[256,2,3,4],permute_src=[0,2,1,3],permute_dst=[0,0,0,0],_src_transpose=0)"


@pytest.mark.parametrize(
    "case_id",
    [
        *(f"GET_ROWS(type={kind},n=256,m=5,r=4,be1=7,be2=1,v=1)" for kind in ("q4_0", "q5_1", "q3_K", "nvfp4")),
        "MUL_MAT(type_a=q4_K,type_b=f32,m=16,n=8,k=256,bs=[2,3],nr=[1,1],per=[0,3,2,1],k_v=0,o=1)",
        "MUL_MAT(type_a=mxfp4,type_b=f32,m=16,n=16,k=256,bs=[3,2],nr=[2,2],per=[0,1,2,3],k_v=0,o=1)",
        "MUL_MAT_ID(type_a=q8_0,type_b=f32,n_mats=4,n_used=2,b=1,m=512,n=5,k=256)",
        "SET_ROWS(type=q5_0,type_idx=i64,ne=[256,11,1,7],nr23=[2,3],r=7,v=1)",
        *(COPY.format(*pair) for pair in (("q6_K", "f32"), ("f32", "q4_1"), ("f16", "q8_0"))),
        "CPY(type_src=q4_K,type_dst=q4_K,ne_src=[512,2,3,4],permute_src=[0,3,1,2],permute_dst=[0,2,1,3],_src_transpose=0)",
        "OUT_PROD(type_a=q4_0,type_b=f32,m=256,n=16,k=16,bs=[3,1],nr=[1,1],trans_b=0)",
    ],
)
def test_shipped_cases_agree_with_the_reference(cpu: Device, shipped: dict[str, Case], case_id: str) -> None:
    outcome = _eval(cpu, shipped[case_id])
    assert (outcome.status, outcome.reason, outcome.notes) == (Status.PASS, "", ())


def test_a_type_that_gguf_cannot_read_is_read_by_ggml_with_a_note(cpu: Device, shipped: dict[str, Case]) -> None:
    outcome = _eval(cpu, shipped["GET_ROWS(type=q1_0,n=256,m=5,r=4,be1=1,be2=1,v=0)"])
    assert outcome.status is Status.PASS
    (note,) = outcome.notes
    assert "has no decoder of q1_0: the values of a are those that ggml reads" in note


def test_a_type_that_gguf_cannot_write_is_refused(cpu: Device, shipped: dict[str, Case]) -> None:
    with pytest.raises(Unsupported, match=r"the NumPy reference cannot write q4_K: gguf .* has no quantiser of it"):
        _eval(cpu, shipped[COPY.format("f32", "q4_K")])


@pytest.mark.parametrize("kind", [kind for kind in _types() if kind.startswith(("iq1_", "iq2_"))])
def test_types_that_ggml_searches_for_get_random_blocks(kind: str) -> None:
    values = np.random.default_rng(2).uniform(-1, 1, 50 * ROW)
    raw = encode(load(), kind, values, ROW)
    assert np.array_equal(raw, encode(load(), kind, values, ROW))
    assert not np.array_equal(raw, encode(load(), kind, values[::-1], ROW))
    peaks = np.abs(decode(load(), kind, raw)).reshape(-1, block_of(kind)[0]).max(axis=1)
    assert peaks.size == 50 * ROW // block_of(kind)[0]
    assert (peaks >= 0.49).all()
    assert (peaks < 2).all()
