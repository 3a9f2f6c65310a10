"""The workers that are alive: starting them, hearing from them, noticing how they end."""

import math
import selectors
import time
from dataclasses import dataclass

from gradcheck.model.errors import LibraryError
from gradcheck.runner.child import Child, kill_group
from gradcheck.runner.options import PoolOptions
from gradcheck.runner.reason import reason_of_death
from gradcheck.runner.template import Template

#: A worker whose channel is closed is about to be reported dead, as soon as its drivers have let go of the
#: device; one that is not has closed the channel and goes on.
HANG_UP_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A worker has sent a line and is ready for the next request. `log` is what it has printed."""

    child: Child
    line: bytes
    log: str


@dataclass(frozen=True, slots=True)
class Died:
    """A worker has ended; it is no longer in the crew. `log` is what it had printed."""

    child: Child
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class Expired:
    """A worker has not answered by its deadline; it is killed and no longer in the crew."""

    child: Child
    log: str


News = Answered | Died | Expired


class Crew:
    """Every worker of a pool and the template that forks them. Starts the template when it is first needed."""

    def __init__(self, options: PoolOptions) -> None:
        self._options = options
        self._template: Template | None = None
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._count = 0

    @property
    def children(self) -> tuple[Child, ...]:
        """The workers that are alive as far as is known."""
        return tuple(self._children.values())

    def prepare(self) -> None:
        """Start the template, so that it imports what workers need while there is other work. Raises LibraryError."""
        try:
            self._start_template()
        except OSError as error:
            raise _no_worker(error) from error

    def _start_template(self) -> Template:
        if self._template is None:
            self._template = Template(self._options)
            self._selector.register(self._template.control, selectors.EVENT_READ, None)
        return self._template

    def hire(self) -> Child:
        """A new worker, ready to be sent a request. Raises LibraryError where none can be started."""
        taken = {child.slot for child in self._children.values()}
        slot = next(number for number in range(len(taken) + 1) if number not in taken)
        self._count += 1
        try:
            template = self._start_template()
            child = Child(self._count, slot)
        except OSError as error:
            raise _no_worker(error) from error
        self._children[child.number] = child
        self._selector.register(child.channel, selectors.EVENT_READ, child)
        try:
            template.fork(child)
        except BaseException:  # it could not load ggml, and has stopped
            self._forget(child)
            self._selector.unregister(template.control)
            self._template = None
            raise
        return child

    def dismiss(self, child: Child) -> None:
        """Kill a worker at once and forget it; nothing where it is gone already."""
        if child.number in self._children:
            self._kill(child)
            self._forget(child)

    def watch(self) -> list[News]:
        """Wait until something happens to a worker, at the longest to the nearest deadline, and tell it all."""
        nearest = min((child.deadline for child in self._children.values()), default=math.inf)
        patience = None if nearest == math.inf else max(nearest - time.monotonic(), 0.0)
        news: list[News] = []
        for key, _ in self._selector.select(patience):
            child: Child | None = key.data
            if child is None:
                news += self._hear_template()
            elif child.number in self._children:
                news += self._hear_child(child)
        now = time.monotonic()
        late = [child for child in self._children.values() if child.deadline <= now]
        return news + [self._expire(child) for child in late]

    def stop(self) -> None:
        """Kill every worker and the template. Nothing of theirs is left when this returns."""
        for child in self.children:
            self.dismiss(child)
        if self._template is not None:
            self._selector.unregister(self._template.control)
            self._template.stop()
            self._template = None
        self._selector.close()

    def _hear_child(self, child: Child) -> list[News]:
        answers = self._answers(child)
        if answers:
            child.deadline = math.inf
        if child.hung_up:
            # Its exit status is on its way from the template, and says more than a closed channel.
            self._selector.unregister(child.channel)
            child.deadline = min(child.deadline, time.monotonic() + HANG_UP_GRACE_S)
        return answers

    def _hear_template(self) -> list[News]:
        template = self._template
        if template is None:
            return []
        reports = template.reports()
        if reports is None:
            return self._lose(template)
        news: list[News] = []
        for report in reports:
            child = self._children.get(report["worker"])
            if child is None:  # dismissed
                continue
            if "pid" in report:
                child.pid = report["pid"]
            elif "error" in report:
                news += self._bury(child, report["error"])
            else:
                news += self._bury(child, reason_of_death(report["status"], child.log_tail()))
        return news

    def _lose(self, template: Template) -> list[News]:
        """The template is dead: kill what it has left behind. The next worker comes from a new one."""
        self._selector.unregister(template.control)
        self._template = None
        template.stop()
        news: list[News] = []
        for child in self.children:
            self._kill(child)
            news += self._bury(child, "lost, for the process that forks the workers was killed")
        return news

    def _bury(self, child: Child, reason: str) -> list[News]:
        news = [*self._answers(child), Died(child, reason, child.log_tail())]  # what it said before counts
        self._forget(child)
        return news

    def _answers(self, child: Child) -> list[News]:
        return [Answered(child, line, child.log_tail()) for line in child.receive()]

    def _expire(self, child: Child) -> News:
        if child.pid is None and self._template is not None:
            self._template.kill()  # it has not even forked in that time
        log = child.log_tail()
        self.dismiss(child)
        return Died(child, "closed its channel without an answer", log) if child.hung_up else Expired(child, log)

    def _kill(self, child: Child) -> None:
        if child.pid is not None:
            kill_group(child.pid)
        elif self._template is not None:  # it will fork this one, or has, and not yet reported it
            self._template.kill_worker(child)

    def _forget(self, child: Child) -> None:
        del self._children[child.number]
        if child.channel in self._selector.get_map():
            self._selector.unregister(child.channel)
        child.close()


def _no_worker(error: OSError) -> LibraryError:
    """What is said where no file descriptor, no process or no temporary file is left."""
    return LibraryError(f"no worker can be started ({error}); try fewer of them with -j")
