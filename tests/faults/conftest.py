"""The real CPU device, once for the tier."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from gradcheck.model.case import Case, Init, Input, Shape
from gradcheck.model.init import INIT_KINDS
from gradcheck.model.job import Settings
from gradcheck.model.place import Place
from gradcheck.model.result import Outcome
from gradcheck.modes import MODES
from gradcheck.modes.bench import Bench

MakeCase = Callable[..., Case]
RunMode = Callable[..., Outcome]


def make_case(graph: str, op: str = "OP", *, inits: dict[str, str] | None = None, **inputs: Shape) -> Case:
    """A case with f32 params of the given shapes."""
    kinds = inits or {}
    return Case(
        op=op,
        name=",".join(f"{name}={list(ne)}" for name, ne in inputs.items()),
        vars=(),
        scope=(),
        inputs=tuple(
            Input(name, "f32", ne, Init(kind, tuple(INIT_KINDS[kind].items())))
            for name, ne in inputs.items()
            for kind in [kinds.get(name, "uniform")]
        ),
        graph=graph,
        place=Place("planted.yaml", 1),
    )


@pytest.fixture(scope="session")
def cpu() -> Any:
    from gradcheck.bindings.devices import open_device

    return open_device("CPU", 1)


@pytest.fixture
def run_mode(cpu: Any) -> RunMode:
    def run(mode: str, case: Case, target: Any = None, settings: Settings | None = None) -> Outcome:
        bench = Bench(target or cpu, lambda: cpu, settings or Settings(), time.perf_counter)
        return MODES[mode](case, bench)

    return run
