"""The pool: jobs in, results out, whatever happens to the workers."""

import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from gradcheck.model.codec import decode, encode
from gradcheck.model.errors import LibraryError
from gradcheck.model.event import Event, Finished, Started
from gradcheck.model.job import Job
from gradcheck.model.result import Outcome, Result
from gradcheck.model.run import LibraryInfo
from gradcheck.model.server import Server
from gradcheck.model.status import Status
from gradcheck.runner.child import Child, Task
from gradcheck.runner.crew import Answered, Crew, Died, Expired, News
from gradcheck.runner.inprocess import InProcess
from gradcheck.runner.options import PoolOptions
from gradcheck.runner.progress import Progress
from gradcheck.runner.verdict import after_crash, judge

#: Listing the devices initialises every driver, which can take long on a machine with many GPUs.
INSPECT_TIMEOUT_S = 120.0


class Pool:
    """Workers that run jobs; a context manager. Nothing of theirs is left after it, whatever ends it."""

    def __init__(self, options: PoolOptions) -> None:
        self._options = options
        self._crew = Crew(options)
        self._here = None if options.isolate else InProcess(options)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._crew.stop()

    def prepare(self) -> None:
        """Start to import what workers need; they are there sooner then. Raises LibraryError."""
        if self._here is None:
            self._crew.prepare()

    def inspect(self, servers: Sequence[Server] = ()) -> LibraryInfo:
        """The ggml that the workers load, its devices and those of RPC servers.

        Raises LibraryError where there is none, or where a server does not answer.
        """
        if self._here is not None:
            return self._here.inspect(servers)
        child = self._crew.hire()
        child.deadline = time.monotonic() + INSPECT_TIMEOUT_S
        child.send({"inspect": encode(tuple(servers))})
        while True:
            for news in self._crew.watch():
                if news.child is child:
                    return _library_from(news)

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Run the jobs; their events in the order in which they happen.

        Every job gets exactly one Finished. One whose worker dies is tried again in a fresh worker, and has a
        second Started then. Raises LibraryError where no worker can be started at all.
        """
        if self._here is not None:
            yield from self._here.run(jobs)
            return
        waiting = deque(Task(job) for job in jobs)
        try:
            while waiting or any(child.task for child in self._crew.children):
                yield from self._hand_out(waiting)
                results = [self._conclude(news, waiting) for news in self._crew.watch()]
                yield from (Finished(result) for result in results if result is not None)
        finally:
            for child in self._crew.children:
                if child.task is not None:  # the caller has gone: nobody waits for this answer
                    self._crew.dismiss(child)

    def call(self, job: Job) -> Result:
        """Run one job and wait for its result."""
        return next(event.result for event in self.run([job]) if isinstance(event, Finished))

    def _hand_out(self, waiting: deque[Task]) -> list[Event]:
        """Give tasks to idle workers, and to new ones where there is room for them."""
        events: list[Event] = []
        while waiting:
            child = self._free_worker(fresh=bool(waiting[0].crash))
            if child is None:
                break
            task = waiting.popleft()
            child.task = task
            child.progress = Progress()
            child.started = time.monotonic()
            child.deadline = child.started + task.job.timeout_s
            child.send({"job": encode(task.job)})
            events.append(Started(task.job, child.slot))
        return events

    def _free_worker(self, *, fresh: bool) -> Child | None:
        children = self._crew.children
        idle = [child for child in children if child.task is None and not child.hung_up]
        if idle and not fresh:
            return idle[0]
        if len(children) < self._options.workers:
            return self._crew.hire()
        if idle:
            self._crew.dismiss(idle[0])
            return self._crew.hire()
        return None

    def _conclude(self, news: News, waiting: deque[Task]) -> Result | None:
        """The result that the news make; None where a task goes on or back to be tried again, or none was in hand."""
        child, task = news.child, news.child.task
        if task is None:
            if isinstance(news, Answered):  # nobody has asked: a process that the worker forked has got loose
                self._crew.dismiss(child)
            return None
        if isinstance(news, Answered) and child.progress.hear(news.line, task.job.index):
            if not child.hung_up:
                child.deadline = time.monotonic() + task.job.timeout_s
            return None
        child.task = None
        elapsed_s = time.monotonic() - child.started
        if isinstance(news, Answered):
            outcome, elapsed_s = _read_answer(news.line, task.job, elapsed_s)
        elif isinstance(news, Died):
            outcome = child.progress.ended(Outcome(Status.CRASH, news.reason))
        else:
            outcome = child.progress.ended(Outcome(Status.TIMEOUT, f"no answer within {task.job.timeout_s:g} s"))
        if outcome.status is Status.CRASH:
            if isinstance(news, Answered):  # it lives, but with a heap that nobody should trust
                self._crew.dismiss(child)
            if not task.crash:
                waiting.appendleft(Task(task.job, crash=outcome.reason, served=child.served))
                return None
        child.served += 1
        if task.crash:
            outcome = after_crash(outcome, task.crash, task.served)
        return judge(task.job, outcome, elapsed_s, news.log)


def _read_answer(line: bytes, job: Job, waited_s: float) -> tuple[Outcome, float]:
    """An answer and the seconds that it took; CRASH where it is none, or is the answer to something else."""
    try:
        body: dict[str, Any] = json.loads(line)
        if body["index"] != job.index:
            raise ValueError(f"answer to job {body['index']}")
        return decode(Outcome, body["outcome"]), float(body["elapsed_s"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Outcome(Status.CRASH, f"gave a garbled answer ({type(error).__name__}: {error})"), waited_s


def _library_from(news: News) -> LibraryInfo:
    if isinstance(news, Died):
        raise LibraryError(f"ggml died while it listed its devices: {news.reason}")
    if isinstance(news, Expired):
        raise LibraryError(f"ggml did not list its devices within {INSPECT_TIMEOUT_S:.0f} s")
    try:
        body: dict[str, Any] = json.loads(news.line)
        if "error" in body:
            raise LibraryError(body["error"])
        return decode(LibraryInfo, body["library"])
    except (ValueError, KeyError, TypeError) as error:
        raise LibraryError(f"a worker gave a garbled list of devices: {error}") from error
