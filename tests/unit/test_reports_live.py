"""Live progress: what a frame shows, and when there is none."""

from io import StringIO

from rich.console import Console

from gradcheck.model.case import Case
from gradcheck.model.event import Finished, Started
from gradcheck.model.job import Job, Settings
from gradcheck.model.place import Place
from gradcheck.model.result import Outcome, Result
from gradcheck.model.run import LibraryInfo, RunInfo
from gradcheck.model.status import Status
from gradcheck.reports.live import LiveProgress, live_stream
from gradcheck.reports.view import Detail

PLACE = Place("a.yaml", 1)
LIBRARY = LibraryInfo("0.15.3", "", "0.0.45", "", ())
INFO = RunInfo("grad", (), ("CPU",), Settings(), 12, 12, LIBRARY, "", "", "", "", "")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def started(index: int) -> Started:
    case = Case("OP", f"n={index},long=[{'1,' * 40}1]", (), (), (), "", PLACE)
    return Started(Job(index, "grad", case, "CPU", Settings()), index % 3)


def finished(index: int, status: Status) -> Finished:
    return Finished(Result(index, "grad", "OP", "OP()", "CPU", PLACE, status, Outcome(status), 0.1))


def frame(live: LiveProgress, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, color_system=None, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(live.frame())
    return capture.get().splitlines()


def progress() -> LiveProgress:
    ticks = iter(range(1000))
    live = LiveProgress(None, clock=lambda: float(next(ticks)))
    live.start(INFO, 12)
    return live


def test_a_frame_counts_and_names_what_runs() -> None:
    live = progress()
    for event in (started(0), started(1), finished(0, Status.FAIL), started(2), finished(2, Status.PASS)):
        live.show(event)
    head, _bar, free, busy = frame(live, 80)
    assert head.startswith("2/12  ")
    assert head.endswith("1 fail  1 pass")
    assert free.strip() == ""
    assert "OP(n=1," in busy


def test_frames_fit_narrow_windows() -> None:
    live = progress()
    for index in range(4):
        live.show(started(index))
    lines = frame(live, 40)
    assert len(lines) == 6
    assert all(len(line) <= 40 for line in lines)


def test_a_line_is_used_again() -> None:
    live = progress()
    for index in range(100):
        live.show(started(index))
        live.show(finished(index, Status.PASS))
    assert len(frame(live, 80)) == 3


def test_a_case_that_is_tried_again_has_one_line() -> None:
    live = progress()
    live.show(started(0))
    live.show(started(0))
    assert len(frame(live, 80)) == 3


def test_many_workers_are_summed_up() -> None:
    live = progress()
    for index in range(40):
        live.show(started(index))
    lines = frame(live, 80)
    assert len(lines) == 2 + 16 + 1
    assert lines[-1].strip() == "and 24 more"


def test_only_a_terminal_gets_progress() -> None:
    terminal, pipe = Terminal(), StringIO()
    assert live_stream((pipe, terminal), Detail.NORMAL, {}) is terminal
    assert live_stream((pipe, pipe), Detail.NORMAL, {}) is None
    assert live_stream((terminal,), Detail.QUIET, {}) is None
    assert live_stream((terminal,), Detail.NORMAL, {"TERM": "dumb"}) is None


def test_nothing_is_left_behind() -> None:
    terminal = Terminal()
    with LiveProgress(terminal) as live:
        live.start(INFO, 12)
        live.show(started(0))
    assert terminal.getvalue().endswith("\x1b[2K")
