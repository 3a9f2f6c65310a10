"""The entry point: the group of commands, and what every way of ending means to the shell."""

import io
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from gradcheck import __version__
from gradcheck.cli.checks import eval_command, grad_command, perf_command, support_command
from gradcheck.cli.devices import devices_command
from gradcheck.cli.listing import list_command
from gradcheck.cli.serve import serve_command
from gradcheck.cli.show import show_command
from gradcheck.cli.stdout import write_stdout
from gradcheck.model.errors import GradcheckError
from gradcheck.reports.exit_code import ExitCode

COMMANDS: dict[str, click.Command] = {
    "grad": grad_command,
    "eval": eval_command,
    "perf": perf_command,
    "support": support_command,
    "list": list_command,
    "show": show_command,
    "devices": devices_command,
    "serve": serve_command,
}


# click keeps the lines of a paragraph that begins with a backspace.
_EPILOG = """\b
Examples:
  gradcheck grad -b cpu             are ggml's gradients right?
  gradcheck grad -b cuda -o SILU    one op on the CUDA devices
  gradcheck list --ops              what can be checked

\b
Exit codes:
  0  all good
  1  something failed
  2  wrong usage, case file or library
  3  nothing was checked
  130  interrupted
"""


class Commands(click.Group):
    """The commands in the order of `COMMANDS`; what a command returns is the exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names as declared: the checks first."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> int:
        """Run a command; a complaint of ours is one line."""
        try:
            code = super().invoke(ctx)
            write_stdout(())
        except GradcheckError as error:
            click.echo(f"gradcheck: error: {error}", err=True)
            return ExitCode.USAGE
        return int(code or 0)


@click.group(
    cls=Commands,
    commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="gradcheck", message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Verify and measure the ops of ggml on every backend of this machine."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the tool and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name or a log that the terminal cannot show must not end the run.
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(_code(list(sys.argv[1:] if argv is None else argv)))


def _code(arguments: list[str]) -> int:
    try:
        # The words themselves go along: the record of a run holds its command.
        return int(commands.main(arguments, prog_name="gradcheck", standalone_mode=False, obj=arguments) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("gradcheck: interrupted", err=True)
        return ExitCode.INTERRUPTED


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: workers are stopped, what is known is written."""
    raise KeyboardInterrupt
