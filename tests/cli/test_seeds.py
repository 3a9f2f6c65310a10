"""`--seeds` and `--suggest-limits`, with the real ggml."""

import json
from pathlib import Path

import pytest

from tests.cli.test_whole_runs import record, run

FAMILIES = """
- {op: GOOD, inputs: {a: [8, 3]}, graph: "out = silu(a)"}
- {op: RULELESS, inputs: {a: [8, 3]}, graph: "out = gelu(a)"}
- op: SOMETIMES
  doc: of a single element that is drawn from few values some make a zero gradient, which is vacuous
  inputs: {a: {ne: [1], init: {kind: uniform, low: -1, high: 1, grid: 1}}}
  graph: out = sqr(a)
"""


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    file = tmp_path / "mixed.yaml"
    file.write_text(FAMILIES)
    return str(file)


def test_every_seed_is_run_and_reported(mixed: str) -> None:
    done = run("grad", "-b", "cpu", "--case", mixed, "-o", "GOOD,RULELESS", "--seed", "4", "--seeds", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seeds 4 to 6 on CPU" in done.stdout
    assert any(line.split()[:4] == ["GOOD", "1", "3", "0"] for line in done.stdout.splitlines())
    assert done.stdout.rstrip().endswith("; seeds 4 to 6")


def test_a_seed_gives_the_same_among_others_as_by_itself(mixed: str) -> None:
    many = record("grad", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seeds", "3")
    trials = many["results"][0]["outcome"]["trials"]["runs"]
    assert [trial["seed"] for trial in trials] == [0, 1, 2]
    for trial in trials:
        one = record("grad", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seed", str(trial["seed"]))
        outcome = one["results"][0]["outcome"]
        beyond = [max(0.0, metric["value"] - metric["uncertainty"]) for metric in outcome["metrics"]]
        assert beyond == trial["values"]
        assert outcome["trials"] is None
    assert many["flakiness"]["totals"][0]["runs"] == 3
    assert many["info"]["settings"]["seeds"] == 3


def test_a_case_that_fails_for_some_seeds_is_found_and_repeated(mixed: str) -> None:
    ops = ("grad", "-b", "cpu", "--case", mixed, "-o", "SOMETIMES")
    found = json.loads(run(*ops, "--seeds", "8", "--format", "json").stdout)
    statuses = {trial["seed"]: trial["status"] for trial in found["results"][0]["outcome"]["trials"]["runs"]}
    assert set(statuses.values()) == {"PASS", "VACUOUS"}
    good = next(seed for seed, status in statuses.items() if status == "PASS")
    assert run(*ops, "--seed", str(good)).returncode == 0
    shown = run(*ops, "--seeds", "8")
    assert shown.returncode == 1
    worst = found["results"][0]["outcome"]["trials"]["worst"]
    command = f"gradcheck grad -b CPU -o 'SOMETIMES()' --seed {worst} --case {mixed}"
    assert command in shown.stdout
    assert run("grad", "-b", "CPU", "-o", "SOMETIMES()", "--seed", str(worst), "--case", mixed).returncode == 1


def test_eval_takes_seeds_too(mixed: str) -> None:
    found = record("eval", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seeds", "3")
    trials = found["results"][0]["outcome"]["trials"]
    assert [name for name, _ in trials["measures"]] == ["nmse", "element"]
    assert [trial["status"] for trial in trials["runs"]] == ["PASS"] * 3


def test_limits_are_proposed(mixed: str) -> None:
    words = ("eval", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seeds", "20", "--suggest-limits")
    done = run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "limits for a failure rate of 1e-4 on CPU" in done.stdout
    found = record(*words, "--target-rate", "0.01")["flakiness"]
    assert found["target_rate"] == 0.01
    assert {one["metric"] for one in found["suggestions"]} == {"nmse", "element"}
    (nmse,) = [one for one in found["suggestions"] if one["metric"] == "nmse"]
    assert 0 < nmse["largest"] < nmse["proposed"]


def test_what_is_within_its_uncertainty_says_nothing_about_limits(mixed: str) -> None:
    words = ("grad", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seeds", "20", "--suggest-limits")
    (maa,) = [one for one in record(*words)["flakiness"]["suggestions"] if one["metric"] == "maa"]
    assert (maa["largest"], maa["proposed"]) == (0.0, None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--suggest-limits"], "limits cannot be proposed from fewer than 20 seeds; add --seeds 20"),
        (["--suggest-limits", "--seeds", "19"], "add --seeds 20"),
        (["--seeds", "20", "--target-rate", "1e-3"], "--target-rate is for --suggest-limits"),
        (["--seeds", "0"], "--seeds"),
        (["--seeds", "20", "--suggest-limits", "--target-rate", "0"], "--target-rate"),
        (["--seeds", "20", "--suggest-limits", "--target-rate", "2"], "--target-rate"),
    ],
)
def test_wrong_usage_says_what_to_do(words: list[str], complaint: str) -> None:
    done = run("grad", "-b", "cpu", "-o", "SILU", *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_cuts_no_number(mixed: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run("grad", "-b", "cpu", "--case", mixed, "-o", "GOOD", "--seeds", "20", "--suggest-limits").stdout
    assert "…" not in shown
    assert "0 to 1.7e-1" in shown
