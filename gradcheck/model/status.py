"""Every way that a case can end."""

from enum import StrEnum


class Status(StrEnum):
    """How a case ended; the words of docs/design.md."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNSUPPORTED = "UNSUPPORTED"
    SKIP = "SKIP"
    VACUOUS = "VACUOUS"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"
    XFAIL = "XFAIL"
    XPASS = "XPASS"

    @property
    def bad(self) -> bool:
        """Whether this ending makes a run red."""
        return self in _BAD

    @property
    def ran(self) -> bool:
        """Whether the case gave a verdict at all: a run in which none did has checked nothing."""
        return self not in (Status.UNSUPPORTED, Status.SKIP)


_BAD = frozenset({Status.FAIL, Status.VACUOUS, Status.CRASH, Status.TIMEOUT, Status.ERROR, Status.XPASS})
