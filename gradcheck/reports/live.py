"""Progress on a terminal while a run goes on: how far, how it looks, what is running now."""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from gradcheck.model.event import Event, Started
from gradcheck.model.run import RunInfo
from gradcheck.model.status import Status
from gradcheck.reports.view import STYLES, Detail, is_terminal, view_of
from gradcheck.reports.wording import duration, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

_MOST_ROWS = 16
_REFRESHES_PER_SECOND = 8
_BAR_WIDTH = 60


def live_stream(streams: tuple[TextIO, ...], detail: Detail, environ: Mapping[str, str] = os.environ) -> TextIO | None:
    """The first stream that can show progress; None with -q, on a dumb terminal, or in a pipe."""
    if detail is Detail.QUIET or environ.get("TERM") == "dumb":
        return None
    return next((stream for stream in streams if is_terminal(stream)), None)


@dataclass(frozen=True, slots=True)
class _Running:
    index: int
    case_id: str
    since: float


class LiveProgress:
    """Shows a run's events while it goes on and leaves nothing behind.

    A context manager; `start` and `show` are the callbacks that `api.run` takes. Without a stream it does
    nothing. Every running case keeps its line until it ends, and lines are reused, so that nothing jumps.
    """

    def __init__(
        self, stream: TextIO | None, color: bool | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._color = color
        self._clock = clock
        self._live: Live | None = None
        self._lock = Lock()  # rich draws from a thread of its own
        self._info: RunInfo | None = None
        self._began = clock()
        self._counts: Counter[Status] = Counter()
        self._rows: list[_Running | None] = []

    def __enter__(self) -> "LiveProgress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def start(self, info: RunInfo, _total: int) -> None:
        """Begin to show a run."""
        self._info = info
        self._began = self._clock()
        if self._stream is None:
            return
        from rich.console import Console
        from rich.live import Live

        color = view_of(self._stream, self._color, Detail.NORMAL).color
        # Without a width rich follows the window when its size changes.
        console = Console(
            file=self._stream,
            force_terminal=True,
            no_color=not color,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._live = Live(
            get_renderable=self.frame,
            console=console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def show(self, event: Event) -> None:
        """Take in an event; the next refresh shows it."""
        with self._lock:
            if isinstance(event, Started):
                self._release(event.job.index)
                row = _Running(event.job.index, event.job.case.id, self._clock())
                if None in self._rows:
                    self._rows[self._rows.index(None)] = row
                else:
                    self._rows.append(row)
            else:
                self._counts[event.result.status] += 1
                self._release(event.result.index)

    def frame(self) -> "RenderableType":
        """What stands on the terminal now."""
        from rich.console import Group

        with self._lock:
            counts, rows = self._counts.copy(), list(self._rows)
        total = self._info.jobs if self._info else 0
        lines = [self._row(row) for row in rows[:_MOST_ROWS]]
        if len(rows) > _MOST_ROWS:
            lines.append(_clipped(f"and {len(rows) - _MOST_ROWS} more"))
        return Group(self._head(counts, total), self._bar(counts.total(), total), *lines)

    def _head(self, counts: Counter[Status], total: int) -> "Text":
        """The line of numbers: what matters most comes first, the end is cut on a narrow terminal."""
        text = _clipped(f"{counts.total()}/{total}  {_ticking(self._clock() - self._began)}")
        for status in sorted(counts, key=lambda s: (not s.bad, s is not Status.PASS, s.value)):
            text.append("  ")
            text.append(f"{counts[status]} {status.value.lower()}", style=STYLES[status])
        return text

    def _bar(self, done: int, total: int) -> "Text":
        width = min(_BAR_WIDTH, self._live.console.width if self._live else _BAR_WIDTH) - 2
        full = width * done // max(total, 1)
        return _clipped(f"[{'#' * full}{'.' * (width - full)}]")

    def _row(self, row: _Running | None) -> "Text":
        if row is None:
            return _clipped("")
        return _clipped(f"{_ticking(self._clock() - row.since):>7}  {one_line(row.case_id)}")

    def _release(self, index: int) -> None:
        self._rows = [None if row is not None and row.index == index else row for row in self._rows]


def _ticking(seconds: float) -> str:
    """An elapsed time that does not tremble: whole seconds."""
    return f"{seconds:.0f} s" if seconds < 59.5 else duration(seconds)


def _clipped(text: str) -> "Text":
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")
