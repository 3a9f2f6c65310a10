"""Kernels that are really wrong: callbacks that ggml runs as ops, with memory that it gave them."""

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.bindings import callbacks
from gradcheck.bindings.devices import open_device
from gradcheck.model.case import Case
from gradcheck.model.job import NUMPY, Settings
from gradcheck.model.result import Outcome
from gradcheck.model.status import Status
from gradcheck.modes import MODES
from gradcheck.modes.bench import Bench, Device
from gradcheck.reference import ReferenceDevice
from tests.builders import make_case

CASE = make_case("out = map_custom1(a, double, 1)", a=(7, 6, 5, 1))
MASKED = make_case("out = map_custom1(diag_mask_inf(a, 0), identity, 1)", a=(6, 6, 2, 1))

#: Spoils what a right kernel has computed: gets its output and its source.
Spoiler = Callable[[NDArray[Any], NDArray[Any]], None]


def behind_the_end(out: NDArray[Any], _source: NDArray[Any]) -> None:
    ctypes.c_float.from_address(out.ctypes.data + out.nbytes).value = 1.0


def before_the_start(out: NDArray[Any], _source: NDArray[Any]) -> None:
    ctypes.c_float.from_address(out.ctypes.data - 4).value = 1.0


def one_element(out: NDArray[Any], _source: NDArray[Any]) -> None:
    out[0, 3, 2, 5] *= 1.01


def last_row(out: NDArray[Any], _source: NDArray[Any]) -> None:
    out[0, -1, -1] = 0


def swapped_rows(out: NDArray[Any], _source: NDArray[Any]) -> None:
    out[0, 0, [1, 2]] = out[0, 0, [2, 1]]


def a_nan(out: NDArray[Any], _source: NDArray[Any]) -> None:
    out[0, 1, 1, 1] = np.nan


def clobbered_input(_out: NDArray[Any], source: NDArray[Any]) -> None:
    source[0, 0, 0, 0] += 1


def wrong_infinity(out: NDArray[Any], _source: NDArray[Any]) -> None:
    out[0, 0, 0, 1] = np.inf


SPOILERS: dict[str, tuple[Case, Spoiler, str]] = {
    "a write behind the end": (CASE, behind_the_end, "something wrote behind the end of out"),
    "a write before the start": (CASE, before_the_start, "something wrote behind the end of a"),
    "one element": (CASE, one_element, "element of out"),
    "the last row": (CASE, last_row, "nmse of out"),
    "swapped rows": (CASE, swapped_rows, "nmse of out"),
    "a NaN": (CASE, a_nan, "1 elements of out are NaN or infinite on one side only"),
    "a clobbered input": (CASE, clobbered_input, "the input a was changed"),
    "an infinity of the wrong sign": (MASKED, wrong_infinity, "1 elements of out are NaN or infinite on one side only"),
}


def judged(case: Case, device: Device) -> Outcome:
    """Against NumPy: the CPU would be wrong in the same way."""
    return MODES["eval"](case, Bench(device, ReferenceDevice, Settings(reference=NUMPY), time.perf_counter))


@pytest.mark.parametrize("case", [CASE, MASKED], ids=["double", "mask"])
def test_the_kernels_are_right_by_themselves(case: Case, cpu: Device) -> None:
    assert judged(case, cpu).status is Status.PASS


@pytest.mark.parametrize("name", SPOILERS)
def test_a_wrong_kernel_is_caught(name: str, cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    case, spoil, reason = SPOILERS[name]
    compute = callbacks._compute

    def wrong(library: Any, rule: Any, dst: Any, sources: list[Any], *share: int) -> None:
        compute(library, rule, dst, sources, *share)
        spoil(callbacks._elements(library, dst), callbacks._elements(library, sources[0]))

    monkeypatch.setattr(callbacks, "_compute", wrong)
    outcome = judged(case, cpu)
    assert outcome.status is Status.FAIL
    assert reason in outcome.reason


def test_an_unwritten_tail_is_caught(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(library: Any, _rule: Any, dst: Any, sources: list[Any], *_share: int) -> None:
        out, source = (callbacks._elements(library, tensor) for tensor in (dst, sources[0]))
        out[..., :4] = 2 * source[..., :4]  # whole vectors of four, and nothing of the three that are left

    monkeypatch.setattr(callbacks, "_compute", short)
    outcome = judged(CASE, cpu)
    assert outcome.status is Status.FAIL
    assert f"{3 * 6 * 5} elements of out are NaN or infinite on one side only" in outcome.reason


def test_a_share_of_a_thread_that_is_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = callbacks._compute
    monkeypatch.setattr(callbacks, "_compute", lambda *given: compute(*given) if given[-2] == 0 else None)
    case = make_case("out = map_custom1(a, double, N_TASKS_MAX)", a=(7, 6, 5, 1))
    device = open_device("CPU", 2)
    outcome = judged(case, device)
    device.close()
    assert outcome.status is Status.FAIL
    assert f"{7 * 6 * 5 // 2} elements of out are NaN or infinite on one side only" in outcome.reason
