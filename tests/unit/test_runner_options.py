"""Memory shares, and a parent that imports nothing heavy."""

import subprocess
import sys

import pytest

from gradcheck.runner import PoolOptions, default_memory, options


def test_memory_is_shared_equally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_available_bytes", lambda: 10 * 2**30)
    assert default_memory(1) == 8 * 2**30
    assert default_memory(4) == 2 * 2**30
    assert PoolOptions(workers=2).config()["memory_bytes"] == 4 * 2**30
    assert PoolOptions(memory_bytes=5).config()["memory_bytes"] == 5
    assert PoolOptions(memory_bytes=0).config()["memory_bytes"] == 0


def test_the_least_of_machine_and_container_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": ["MemTotal: 9 kB", "MemAvailable:   2048 kB"],
        "/sys/fs/cgroup/memory.max": ["1048576"],
        "/sys/fs/cgroup/memory.current": ["48576"],
    }
    monkeypatch.setattr(options, "_read_lines", lambda path: files.get(path, []))
    assert options._available_bytes() == 1_000_000
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    assert options._available_bytes() == 2048 * 1024
    files.clear()
    assert options._available_bytes() > 2**28


def test_the_parent_imports_neither_numpy_nor_ggml_nor_the_worker() -> None:
    code = "import sys, gradcheck.runner; print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("numpy", "ggml", "gradcheck.worker", "gradcheck.modes"):
        assert f"'{name}'" not in modules
