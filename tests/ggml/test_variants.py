"""Every variant of a few ops on the real CPU: what passes, and what ggml gets wrong or refuses."""

from pathlib import Path

import pytest

from gradcheck import api
from gradcheck.model.errors import CaseFileError
from gradcheck.model.result import Result
from gradcheck.model.status import Status
from gradcheck.variants import VARIANTS

FAMILIES = """
- {op: SILU, vars: {ne: [[12, 5, 3, 2]]}, inputs: {a: {ne: ne}}, graph: out = silu(a)}
- {op: ADD, vars: {ne: [[12, 5, 3, 2]]}, inputs: {a: {ne: ne}, b: {ne: ne}}, graph: "out = add(a, b)"}
- {op: MUL_MAT, vars: {k: 12}, inputs: {a: {ne: "k, 5, 3, 2"}, b: {ne: "k, 4, 3, 2"}}, graph: "out = mul_mat(a, b)"}
- {op: SOFT_MAX, vars: {ne: [[12, 5, 3, 2]]}, inputs: {a: {ne: ne}}, graph: out = soft_max(a)}
- {op: GELU, inputs: {a: [12, 5]}, graph: out = gelu(a)}
"""

#: Where ggml 0.15.3 is wrong (docs/findings.md), or says before it begins that it takes no such tensor.
NOT_PASSING = {
    "SILU+sliced": Status.FAIL,
    "SILU+permuted": Status.FAIL,
    "SILU+transposed": Status.UNSUPPORTED,
    "SILU+strided_cotangent:transposed": Status.FAIL,
    "SILU+strided_cotangent:permuted": Status.FAIL,
    "ADD+transposed": Status.CRASH,
    "MUL_MAT+transposed": Status.UNSUPPORTED,
    "SOFT_MAX+sliced": Status.UNSUPPORTED,
    "SOFT_MAX+padded": Status.UNSUPPORTED,
    "SOFT_MAX+permuted": Status.UNSUPPORTED,
    "SOFT_MAX+transposed": Status.UNSUPPORTED,
    "SOFT_MAX+strided_cotangent:transposed": Status.CRASH,
    "SOFT_MAX+strided_cotangent:permuted": Status.CRASH,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    path = tmp_path_factory.mktemp("variants") / "x.yaml"
    path.write_text(FAMILIES)
    selection = api.Selection(files=(str(path),), variants=("all",))
    run = api.run(api.RunOptions("grad", ("cpu",), selection))
    return {result.op + result.case_id.rpartition(")")[2]: result for result in run.results}


def test_every_variant_occurs(results: dict[str, Result]) -> None:
    assert {name.partition("+")[2].split(":")[0] for name in results} == {"", *VARIANTS}


def test_what_passes_and_what_does_not(results: dict[str, Result]) -> None:
    expected = {name: NOT_PASSING.get(name, Status.PASS) for name in results if not name.startswith("GELU")}
    assert {name: result.outcome.status for name, result in results.items() if name in expected} == expected


def test_all_of_it_is_known(results: dict[str, Result]) -> None:
    assert {result.status for result in results.values()} == {Status.PASS, Status.XFAIL, Status.UNSUPPORTED}


def test_no_variant_of_an_op_without_a_rule_runs(results: dict[str, Result]) -> None:
    gelu = [result for name, result in results.items() if name.startswith("GELU")]
    assert len(gelu) > 10
    assert {result.status for result in gelu} == {Status.UNSUPPORTED}


def test_a_graph_that_ggml_refuses_is_unsupported_in_its_words(results: dict[str, Result]) -> None:
    assert "GGML_ASSERT(ggml_is_contiguous(a)) failed" in results["SOFT_MAX+sliced"].outcome.reason


def test_elements_outside_of_a_slice_are_judged_too(results: dict[str, Result]) -> None:
    counts = dict(results["ADD+sliced"].outcome.counts)
    assert counts["elements"] == counts["judged"] == 2 * 13 * 6 * 4 * 3


def test_a_graph_that_is_wrong_in_the_file_stops_the_run_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text('{op: ADD, inputs: {a: [4, 3], b: [5, 3]}, graph: "out = add(a, b)"}')
    selection = api.Selection(files=(str(path),), variants=("all",))
    with pytest.raises(CaseFileError, match=r"x\.yaml:1: add\(a, b\): ggml refuses"):
        api.run(api.RunOptions("grad", ("cpu",), selection))
