"""The commands against a stand-in for gradcheck.api: options in, output and exit codes out."""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gradcheck
from gradcheck.cli import main
from gradcheck.model.case import Case, Input
from gradcheck.model.errors import UsageError
from gradcheck.model.event import Finished
from gradcheck.model.job import Settings
from gradcheck.model.place import Place
from gradcheck.model.result import Outcome, Result
from gradcheck.model.run import DeviceInfo, LibraryInfo, Run, RunInfo
from gradcheck.model.status import Status
from gradcheck.reports.json import read_json

LIBRARY = LibraryInfo("0.15.3", "", "0.0.45", "/x", (DeviceInfo("CPU", "A cpu", "CPU", "CPU", 0, 2**34),))
PLACE = Place("silu.yaml", 3)
INPUT = Input("a", "f32", (4, 1, 1, 1))
CASES = tuple(Case("SILU", f"type=f32,v={v}", (), (), (INPUT,), "out = silu(a)", PLACE) for v in (0, 1))
ROWS = (
    ("NONE", "a", "f32", (4, 1, 1, 1), (4, 16, 16, 16), 1, 0, (), ""),
    ("SILU", "out", "f32", (4, 1, 1, 1), (4, 16, 16, 16), 0, 0, (0,), ""),
)
BACKWARD = (*ROWS, ("SILU_BACK", "grad for a", "f32", (4, 1, 1, 1), (4, 16, 16, 16), 0, 0, (0, 1), ""))


@dataclass
class FakeApi:
    """What the commands see of the api; `asked` is what they wanted."""

    statuses: list[Status] = field(default_factory=lambda: [Status.PASS])
    error: Exception | None = None
    interrupted: bool = False
    cases: tuple[Case, ...] = CASES
    asked: Any = None
    Selection = SimpleNamespace
    RunOptions = SimpleNamespace

    def select_cases(self, selection: Any, mode: str) -> tuple[Case, ...]:
        self.asked = SimpleNamespace(selection=selection, mode=mode)
        if self.error:
            raise self.error
        return self.cases

    def run(self, options: Any, on_event: Callable[..., None], on_start: Callable[..., None]) -> Run:
        self.asked = options
        if self.error:
            raise self.error
        results = tuple(self._result(i, options.mode, s) for i, s in enumerate(self.statuses))
        count = len(results)
        settings = options.settings
        info = RunInfo(
            options.mode, options.command, ("CPU",), settings, count, count, LIBRARY, "0", "3", "2", "L", "T"
        )
        on_start(info, count)
        for result in results:
            on_event(Finished(result))
        return Run(info, results, 1.0, self.interrupted)

    def graphs(self, cases: Sequence[Case], *, backward: bool = False) -> Iterator[Result]:
        for index, case in enumerate(cases):
            outcome = Outcome(Status.PASS, tensors=BACKWARD if backward else ROWS, out=1)
            yield Result(index, "graph", case.op, case.id, "CPU", PLACE, Status.PASS, outcome, 0.0)

    def devices(self, _backends: tuple[str, ...]) -> LibraryInfo:
        return LIBRARY

    @staticmethod
    def _result(index: int, mode: str, status: Status) -> Result:
        case = f"SILU(type=f32,v={index})"
        return Result(index, mode, "SILU", case, "CPU", PLACE, status, Outcome(status, f"why {status}"), 0.1)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    fake = FakeApi()
    monkeypatch.setitem(sys.modules, "gradcheck.api", fake)
    monkeypatch.setattr(gradcheck, "api", fake, raising=False)
    old = signal.getsignal(signal.SIGTERM)
    yield fake
    signal.signal(signal.SIGTERM, old)


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_alone_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of() == 0
    assert "gradcheck grad -b cpu" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["grad", "eval", "perf", "support", "list", "show", "devices"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_explains_itself(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(command, option) == 0
    assert f"Example: gradcheck {command}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("--version") == 0
    assert capsys.readouterr().out == f"gradcheck {gradcheck.__version__}\n"


def test_grad_passes_everything_on(api: FakeApi, tmp_path: Path) -> None:
    words = [
        *("grad", "-b", "cpu", "-b", "cuda", "-o", "ADD(ne=[1,2],v=0),MUL*", "-o", "SILU", "-p", "f16"),
        *("--case", str(tmp_path), "-j", "3", "--seed", "7", "--timeout", "2.5", "--max-memory", "1G"),
        *("--threads", "2", "--no-isolation", "--cotangent", "ones", "--max-elements", "9"),
        *("--limit", "maa=1e-4", "--limit", "rel_l2=1", "--variants", "sliced,tails"),
    ]
    assert code_of(*words) == 0
    assert api.asked.backends == ("cpu", "cuda")
    assert vars(api.asked.selection) == {
        "ops": ("ADD(ne=[1,2],v=0)", "MUL*", "SILU"),
        "pattern": "f16",
        "files": (str(tmp_path),),
        "variants": ("sliced", "tails"),
    }
    assert api.asked.settings == Settings(
        seed=7, limits=(("maa", 1e-4), ("rel_l2", 1.0)), cotangent="ones", max_elements=9, threads=2
    )
    assert (api.asked.workers, api.asked.timeout_s, api.asked.memory_bytes) == (3, 2.5, 2**30)
    assert api.asked.isolate is False
    assert api.asked.command == ("gradcheck", *words)


def test_grad_in_other_memory_and_with_other_threads(api: FakeApi) -> None:
    assert code_of("grad", "--alloc", "all", "--threads", "2,1,4,1") == 0
    assert api.asked.settings == Settings(alloc="all", threads=2, more_threads=(1, 4))


@pytest.mark.parametrize("words", [("--threads", "1,x"), ("--threads", "0"), ("--threads", ""), ("--alloc", "mine")])
def test_wrong_memory_and_threads_are_usage_errors(
    words: tuple[str, str], api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("grad", *words) == 2
    assert api.asked is None
    assert repr(words[1]) in capsys.readouterr().err


@pytest.mark.parametrize("command", ["grad", "eval"])
def test_seeds_and_the_rate_for_limits_are_passed_on(api: FakeApi, command: str) -> None:
    assert code_of(command, "--seed", "3", "--seeds", "30", "--suggest-limits", "--target-rate", "1e-3") == 0
    assert api.asked.settings == Settings(seed=3, seeds=30)
    assert api.asked.target_rate == 1e-3
    assert code_of(command, "--seeds", "30", "--suggest-limits") == 0
    assert api.asked.target_rate == 1e-4
    assert code_of(command) == 0
    assert api.asked.target_rate is None


def test_defaults_are_those_of_the_records(api: FakeApi) -> None:
    assert code_of("grad") == 0
    assert api.asked.settings == Settings()
    assert (api.asked.workers, api.asked.memory_bytes, api.asked.isolate) == (None, None, True)
    assert code_of("eval", "--reference", "CUDA0") == 0
    assert api.asked.settings == Settings(reference="CUDA0")
    assert code_of("perf", "--budget", "0.5") == 0
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert api.asked.settings == Settings(budget_s=0.5, threads=processors)
    assert code_of("perf", "--backward", "--threads", "3") == 0
    assert api.asked.settings == Settings(backward=True, threads=3)
    assert code_of("support") == 0
    assert api.asked.mode == "support"


@pytest.mark.parametrize(
    "words",
    [
        ("grad", "--sed", "1"),
        ("grads",),
        ("grad", "--seed", "-1"),
        ("grad", "-j", "0"),
        ("grad", "-p", "("),
        ("grad", "--case", "/nowhere/at/all"),
        ("grad", "--format", "xml"),
        ("grad", "--output", "json=/nowhere/at/all"),
        ("grad", "-v", "-q"),
        ("perf", "-j", "2"),
        ("list", "--ops", "--graph"),
        ("show",),
        ("show", "SILU"),
    ],
)
@pytest.mark.usefixtures("api")
def test_wrong_usage_is_2_and_says_why(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "rror: " in said.err
    assert "Traceback" not in said.err


def test_our_complaints_are_one_line(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.error = UsageError("no op SILLU; did you mean SILU?")
    for command in ("grad", "list"):
        assert code_of(command) == 2
        assert capsys.readouterr().err == "gradcheck: error: no op SILLU; did you mean SILU?\n"


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([Status.PASS, Status.XFAIL], 0),
        ([Status.PASS, Status.FAIL], 1),
        ([Status.UNSUPPORTED], 3),
        ([], 3),
    ],
)
def test_the_exit_code_is_the_verdict(api: FakeApi, statuses: list[Status], code: int) -> None:
    api.statuses = statuses
    assert code_of("grad") == code
    api.interrupted = True
    assert code_of("grad") == 130


def test_an_interrupt_outside_a_run_is_130(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.error = KeyboardInterrupt()  # type: ignore[assignment]
    assert code_of("list") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_formats_and_outputs(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.statuses = [Status.FAIL]
    svg, text = tmp_path / "a.svg", tmp_path / "a.txt"
    assert code_of("grad", "--format", "json", "--output", f"svg={svg}", "--output", f"text={text}") == 1
    assert read_json(capsys.readouterr().out).results[0].status is Status.FAIL
    assert svg.read_text(encoding="utf-8").startswith("<svg")
    assert "why FAIL" in text.read_text(encoding="utf-8")


def test_an_output_survives_a_run_that_never_starts(api: FakeApi, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("precious")
    api.error = UsageError("no op")
    assert code_of("grad", "--output", f"json={old}", "--output", f"json={new}") == 2
    assert old.read_text() == "precious"
    assert not new.exists()
    api.error = None
    assert code_of("grad", "--output", f"json={old}") == 0
    assert read_json(old.read_text()).results


def test_a_full_disk_is_told_after_the_report(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    assert code_of("grad", "--output", "json=/dev/full") == 2
    said = capsys.readouterr()
    assert "1 case on CPU: 1 pass" in said.out
    assert said.err == "gradcheck: error: cannot write /dev/full: No space left on device\n"
    assert api.asked


@pytest.mark.usefixtures("api")
def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("list") == 0
    assert capsys.readouterr().out == "SILU(type=f32,v=0)\nSILU(type=f32,v=1)\n"
    assert code_of("list", "--ops") == 0
    assert capsys.readouterr().out == "SILU  2\n"
    assert code_of("list", "--ops", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"op": "SILU", "cases": 2}]
    assert code_of("list", "--format", "jsonl") == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert json.loads(line) == {"op": "SILU", "vars": "type=f32,v=0", "place": "silu.yaml:3"}


@pytest.mark.usefixtures("api")
def test_list_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("list", "--graph", "--format", "jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == {
        "op": "SILU",
        "vars": "type=f32,v=0",
        "out": 1,
        "tensors": json.loads(json.dumps(ROWS)),
    }


def test_list_of_nothing_is_3(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.cases = ()
    assert code_of("list", "--format", "json") == 3
    assert capsys.readouterr().out == "[]\n"


def test_show(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    known = replace(INPUT, name="b", type="i32", param=False, reason="indices")
    api.cases = (replace(CASES[0], inputs=(INPUT, known)),)
    assert code_of("show", "SILU(type=f32,v=0)") == 0
    assert api.asked.selection.ops == ("SILU(type=f32,v=0)",)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "f32", "4", "uniform(low=-1,", "high=1)", "yes"] in lines
    assert any(line[:2] == ["b", "i32"] and line[-2:] == ["no:", "indices"] for line in lines)
    assert ["1", "SILU", "f32", "4", "#0", "out"] in lines
    assert ["2", "SILU_BACK", "f32", "4", "#0,", "#1", "grad", "for", "a"] in lines


@pytest.mark.usefixtures("api")
def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("devices") == 0
    assert "CPU   CPU       CPU      -  16.0 GiB  A cpu" in capsys.readouterr().out
    assert code_of("devices", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["ggml_version"] == "0.15.3"


def test_list_needs_neither_rich_nor_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] in ("rich", "numpy") or n.startswith("gradcheck.cli")]:
        monkeypatch.delitem(sys.modules, name)
    importlib.import_module("gradcheck.cli.main")
    assert "rich" not in sys.modules
    assert "numpy" not in sys.modules
