"""The pool with the real worker: ggml on its CPU backend."""

from collections.abc import Iterator

import pytest

from gradcheck.model.case import Shape
from gradcheck.model.job import Job, Settings
from gradcheck.model.status import Status
from gradcheck.runner import Pool, PoolOptions
from tests.builders import make_case


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(PoolOptions(memory_bytes=4 * 2**30)) as pool:
        yield pool


def job(mode: str, graph: str, ne: Shape = (10, 5, 4, 3), target: str = "CPU") -> Job:
    return Job(0, mode, make_case(graph, a=ne), target, Settings(reference="CPU"))


def test_the_library_and_its_devices(pool: Pool) -> None:
    info = pool.inspect()
    assert info.ggml_version
    assert "CPU" in [device.name for device in info.devices]


@pytest.mark.parametrize(
    ("mode", "graph", "status", "reason"),
    [
        ("grad", "out = silu(a)", Status.PASS, ""),
        ("grad", "out = gelu(a)", Status.UNSUPPORTED, "unsupported unary op for backward pass: GELU"),
        ("eval", "out = gelu(a)", Status.PASS, ""),
        ("eval", "out = permute(a, 0, 0, 0, 0)", Status.ERROR, "axis0 != axis1"),
    ],
)
def test_modes_run_in_a_worker(pool: Pool, mode: str, graph: str, status: Status, reason: str) -> None:
    result = pool.call(job(mode, graph))
    assert result.status is status
    assert reason in result.outcome.reason


def test_tensors_of_128_gb_are_not_begun_and_the_next_case_runs(pool: Pool) -> None:
    result = pool.call(job("eval", "out = silu(a)", ne=(2**17, 2**17, 1, 1)))
    assert result.status is Status.SKIP
    assert result.outcome.reason.startswith("the graph on CPU takes about 128.0 GiB, and ")
    assert pool.call(job("eval", "out = silu(a)")).status is Status.PASS


def test_a_device_that_is_not_there(pool: Pool) -> None:
    result = pool.call(job("eval", "out = silu(a)", target="NOPE"))
    assert result.status is Status.ERROR
    assert "NOPE" in result.outcome.reason
