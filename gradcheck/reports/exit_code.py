"""What a run means to the shell that started it."""

from enum import IntEnum

from gradcheck.model.run import Run


class ExitCode(IntEnum):
    """The exit codes of docs/design.md."""

    GOOD = 0
    BAD = 1
    USAGE = 2
    NOTHING = 3
    INTERRUPTED = 130


def exit_code(run: Run) -> ExitCode:
    """The exit code of a run; a known failure that fails is good, and it did run."""
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if any(result.outcome.invalid_case for result in run.results):
        return ExitCode.USAGE
    if any(result.status.bad for result in run.results):
        return ExitCode.BAD
    if not any(result.status.ran for result in run.results):
        return ExitCode.NOTHING
    return ExitCode.GOOD
