"""The real CPU device, once for all tests that want it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gradcheck.bindings.devices import Device


@pytest.fixture(scope="session")
def cpu() -> "Iterator[Device]":
    from gradcheck.bindings.devices import open_device  # late: most tests need no ggml

    device = open_device("CPU")
    yield device
    device.close()
