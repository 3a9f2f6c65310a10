"""Devices whose memory is not ours: values, gradients, and what is written where nothing may write."""

from typing import Any

import pytest

from tests.device.serving import record

#: Of what a backend takes, these must be right; more ops and strides are the business of a run by hand.
EVAL = ("-o", "SQR,SILU,SOFT_MAX,RMS_NORM,CONCAT", "-p", "^(?!.*f16)")
GRAD = ("-o", "SILU,SQR,SOFT_MAX,SUM_ROWS", "-p", "^(?!.*(f16|strided))")


@pytest.mark.parametrize("backend", [pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("vulkan", "cuda")])
def test_eval(backend: str) -> None:
    found = record("eval", "-b", backend, *EVAL, timeout_s=600)
    check(found["results"])


@pytest.mark.parametrize("backend", [pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("vulkan", "cuda")])
def test_grad(backend: str) -> None:
    found = record("grad", "-b", backend, *GRAD, timeout_s=600)
    check(found["results"])


@pytest.mark.parametrize("backend", [pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("vulkan", "cuda")])
def test_through_the_scheduler(backend: str) -> None:
    found = record("eval", "-b", backend, "--sched", *EVAL, timeout_s=600)
    check(found["results"])
    places = {device for r in found["results"] if r["outcome"]["placement"] for _, device in _nodes(r)}
    assert places >= {found["info"]["targets"][0]}


def _nodes(result: dict[str, Any]) -> list[list[str]]:
    nodes: list[list[str]] = result["outcome"]["placement"]["nodes"]
    return nodes


def check(results: list[dict[str, object]]) -> None:
    ended = {str(result["status"]) for result in results}
    assert "PASS" in ended
    assert ended <= {"PASS", "UNSUPPORTED", "SKIP", "XFAIL"}
