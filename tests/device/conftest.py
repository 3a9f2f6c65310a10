"""What these tests need of the loaded ggml; a test whose device is not there is skipped with the reason."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.device.serving import TOOL, Serving

#: marker -> the registry of the devices that it needs
REGISTRIES = {"blas": "BLAS", "vulkan": "Vulkan", "cuda": "CUDA"}


@cache
def registries() -> frozenset[str]:
    """The registries of all devices, asked in a process of its own: drivers do not survive a fork."""
    done = subprocess.run([*TOOL, "devices", "--format", "json"], capture_output=True, text=True, check=True)
    return frozenset(device["registry"] for device in json.loads(done.stdout)["devices"])


@cache
def has_rpc() -> bool:
    code = "import ggml; print(ggml.GGML_USE_RPC)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


@pytest.fixture(autouse=True)
def equipped(request: pytest.FixtureRequest) -> None:
    for mark in request.node.iter_markers():
        if mark.name == "rpc" and not has_rpc():
            pytest.skip("this ggml was built without RPC; see `make backends`")
        if mark.name in REGISTRIES and REGISTRIES[mark.name] not in registries():
            pytest.skip(f"this ggml has no {REGISTRIES[mark.name]} device; see `make backends`")


@pytest.fixture
def serving() -> Iterator[Serving]:
    """A server of the CPU on a free port of the loopback."""
    with Serving.start() as serving:
        yield serving


@pytest.fixture
def without_rpc() -> None:
    if has_rpc():
        pytest.skip("this ggml has RPC")
