"""Files that a run will write: opened before it starts, replaced only when there is something to put in."""

import contextlib
import os
import stat
from dataclasses import dataclass, replace
from typing import TextIO

from gradcheck.model.errors import UsageError
from gradcheck.model.run import Run
from gradcheck.reports import FORMATS
from gradcheck.reports.view import View


@dataclass(frozen=True, slots=True)
class Output:
    """An open file and the form that goes into it."""

    form: str
    path: str
    stream: TextIO
    fresh: bool


class Outputs:
    """The files of a run, as a context manager.

    They are opened for appending, so that a run that never starts leaves older files as they were.
    """

    def __init__(self, requested: tuple[tuple[str, str], ...]) -> None:
        self._files = contextlib.ExitStack()
        self._outputs: list[Output] = []
        self._written = False
        try:
            for form, path in requested:
                self._outputs.append(self._open(form, path))
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, run: Run, view: View) -> None:
        """Write every form to its file. Raises UsageError where a file takes no more."""
        self._written = True
        for output in self._outputs:
            try:
                if stat.S_ISREG(os.fstat(output.stream.fileno()).st_mode):
                    output.stream.truncate(0)
                output.stream.write(FORMATS[output.form](run, replace(view, color=False)))
                output.stream.flush()
            except OSError as error:
                raise UsageError(f"cannot write {output.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the files; those that were made and stayed empty go away."""
        with contextlib.suppress(OSError):
            self._files.close()
        for output in self._outputs:
            if output.fresh and not self._written:
                with contextlib.suppress(OSError):
                    os.unlink(output.path)

    def _open(self, form: str, path: str) -> Output:
        fresh = not os.path.exists(path)
        try:
            stream = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        return Output(form, path, self._files.enter_context(stream), fresh)
