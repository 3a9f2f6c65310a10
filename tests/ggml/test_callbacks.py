"""Callbacks as ops: every thread its share, elements by their strides, refusals before ggml is asked."""

from typing import Any

import numpy as np
import pytest

from gradcheck.bindings import callbacks
from gradcheck.bindings.devices import Device, open_device
from gradcheck.model.case import Case
from gradcheck.model.errors import InvalidCase, Unsupported
from gradcheck.reference.custom import CALLBACKS as REFERENCE
from tests.builders import Typed, make_case, sample

A = (6, 5, 4, 3)


def computed(device: Device, case: Case) -> tuple[dict[str, Any], Any]:
    values = sample(case)
    program = device.open(case)
    try:
        program.load(values)
        out = program.forward()
        assert not program.overwrites()
        assert not program.changed_inputs()
    finally:
        program.free()
    return values, out


def test_the_reference_has_the_same_callbacks() -> None:
    assert set(REFERENCE) == set(callbacks.CALLBACKS)


@pytest.mark.parametrize(
    ("graph", "right"),
    [
        ("out = map_custom1(a, identity, 1)", lambda v: v["a"]),
        ("out = map_custom1_inplace(a, double, 1)", lambda v: 2 * v["a"]),
        ("out = map_custom2(a, b, add, N_TASKS_MAX)", lambda v: v["a"] + v["b"]),
        ("out = map_custom3(a, b, c, fma, 2)", lambda v: v["a"] * v["b"] + v["c"]),
        ("out = custom_4d('f32', 6, 5, 4, 3, [a, b, c], fma, 2)", lambda v: v["a"] * v["b"] + v["c"]),
        ("out = custom_inplace(a, [b], mul, 2)", lambda v: v["a"] * v["b"]),
        ("out = map_custom2(a, view_3d(a, 6, 5, 4, a.nb[1], a.nb[2], a.nb[3]), add, 1)", lambda v: v["a"] + v["a"][1]),
    ],
)
def test_values(cpu: Device, graph: str, right: Any) -> None:
    values, out = computed(cpu, make_case(graph, a=A, b=A, c=(6, 1, 1, 1)))
    want = right({name: array.astype(np.float64) for name, array in values.items()})
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-6)


def test_a_strided_source(cpu: Device) -> None:
    values, out = computed(cpu, make_case("out = map_custom1(permute(a, 1, 2, 0, 3), double, 1)", a=A))
    np.testing.assert_array_equal(out, 2 * values["a"].transpose(0, 2, 3, 1))


def test_every_thread_computes_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    compute = callbacks._compute

    def recorded(*arguments: Any) -> None:
        seen.append(arguments[-2:])
        compute(*arguments)

    monkeypatch.setattr(callbacks, "_compute", recorded)
    device = open_device("CPU", 3)
    try:
        values, out = computed(device, make_case("out = map_custom1(a, double, N_TASKS_MAX)", a=A))
    finally:
        device.close()
    assert sorted(seen) == [(0, 3), (1, 3), (2, 3)]
    np.testing.assert_array_equal(out, 2 * values["a"].astype(np.float64))


def test_a_share_that_nobody_computes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = callbacks._compute
    monkeypatch.setattr(callbacks, "_compute", lambda *a: compute(*a) if a[-2] == 0 else None)
    device = open_device("CPU", 2)
    try:
        _, out = computed(device, make_case("out = map_custom1(a, double, N_TASKS_MAX)", a=A))
    finally:
        device.close()
    assert np.isnan(out).sum() == out.size // 2


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("out = map_custom1(a, dobule, 1)", "unknown name `dobule`"),
        (
            "out = map_custom1(a, 'dobule', 1)",
            "no callback 'dobule' (did you mean double?); there are identity, double",
        ),
        ("out = map_custom1(a, 1, 1)", "no callback 1; there are"),
        ("out = map_custom2(a, a, double, 1)", "the callback double reads 1 source, not 2"),
        ("out = map_custom1(i, identity, 1)", "the callback identity computes f32 and f16, not i32"),
        ("out = custom_4d(TYPE_Q4_0, 32, 1, 1, 1, [a], identity, 1)", "computes f32 and f16, not q4_0"),
        ("out = custom_4d('f32', 6, 1, 1, 1, a, identity, 1)", "custom_4d: `args` must be a list of tensors"),
        ("out = map_custom1(a, identity, 0)", "ggml refuses: GGML_ASSERT(n_tasks == GGML_N_TASKS_MAX || n_tasks > 0)"),
        ("out = map_custom1(a, identity)", "map_custom1 takes 3 arguments (a, fun, n_tasks), got 2"),
    ],
)
def test_refusals(cpu: Device, graph: str, said: str) -> None:
    with pytest.raises(InvalidCase) as caught:
        cpu.open(make_case(graph, a=A, i=Typed("i32", A, False)))
    assert said in str(caught.value)


def test_ggml_has_no_backward_rule(cpu: Device) -> None:
    with pytest.raises(Unsupported, match="unsupported ggml op for backward pass: CUSTOM"):
        cpu.open(make_case("out = custom_4d('f32', 6, 5, 4, 3, [a], double, 1)", a=A), backward=True)
