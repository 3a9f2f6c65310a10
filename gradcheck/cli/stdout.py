"""Standard output, which may be a pipe whose reader has seen enough, or a full disk."""

import contextlib
import os
import sys
from collections.abc import Iterable

from gradcheck.model.errors import UsageError


def write_stdout(parts: Iterable[str]) -> None:
    """Write parts of text as they come. A reader that went away is no error: the rest goes nowhere.

    Raises UsageError where the file behind standard output takes no more.
    """
    try:
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
    except OSError as error:
        _silence()
        raise UsageError(f"cannot write to standard output: {error.strerror}") from error


def _silence() -> None:
    """Lead standard output nowhere, so that Python's own flush at the end does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
