"""The command line: click commands around `gradcheck.api`."""

from gradcheck.cli.main import main

__all__ = ["main"]
