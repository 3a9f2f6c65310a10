"""Every option, declared once; commands take groups of them."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gradcheck.cli.parameters import FormFile, Limit, OpList, Pattern, Size, ThreadCounts, VariantList
from gradcheck.model.job import ALL, ALLOCATIONS
from gradcheck.model.limits import MODES
from gradcheck.reports import FORMATS
from gradcheck.variants import DEFAULT_NAMES, VARIANTS

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[Any], Any]

BACKEND = click.option(
    "-b",
    "--backend",
    "backends",
    multiple=True,
    metavar="TARGET",
    help="Check this device: a name, registry or type in any case (cpu, cuda, gpu), or the one that a server has "
    "(rpc://HOST:PORT, or rpc://CPU@HOST:PORT to say what it has). May be repeated.",
)
LISTED = click.option(
    "-b",
    "--backend",
    "backends",
    multiple=True,
    metavar="TARGET",
    help="Only what this means; rpc://HOST:PORT asks a server. May be repeated.",
)

OPS = click.option(
    "-o",
    "--op",
    "ops",
    multiple=True,
    type=OpList(),
    metavar="OP[,OP...]",
    help="Only these: op names, globs (MUL*) or case ids. May be repeated.",
)
PATTERN = click.option(
    "-p",
    "--pattern",
    type=Pattern(),
    metavar="REGEX",
    help="Only cases whose variables match, as in 'type=f16'.",
)
CASE_FILES = click.option(
    "--case",
    "files",
    multiple=True,
    type=click.Path(exists=True),
    metavar="FILE_OR_DIR",
    help="Take the cases of this file or folder instead of the shipped ones. May be repeated.",
)
SELECTION = (OPS, PATTERN, CASE_FILES)


def variants(default: str) -> Option:
    """The option for corner cases; `default` says in words what there is where it is not given."""
    return click.option(
        "--variants",
        type=VariantList(),
        metavar="NAME[,NAME...]",
        help=f"Corner cases of each case: {', '.join(VARIANTS)}; all; none; or default, which is "
        f"{', '.join(DEFAULT_NAMES)} for one case of each op.  [default: {default}]",
    )


SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Where every random number comes from.",
)
SEEDS = click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run each case with N seeds, counted from --seed, and report how often it fails.",
)
SUGGEST_LIMITS = click.option(
    "--suggest-limits",
    is_flag=True,
    help="Propose limits that are exceeded at --target-rate, from what the seeds gave; takes --seeds 20 at least.",
)
TARGET_RATE = click.option(
    "--target-rate",
    type=click.FloatRange(min=0, max=0.1, min_open=True),
    metavar="RATE",
    help="The share of runs that may fail, for --suggest-limits.  [default: 1e-4]",
)
DEFAULT_RATE = 1e-4
TRIALS = (SEEDS, SUGGEST_LIMITS, TARGET_RATE)
JOBS = click.option(
    "-j",
    "--jobs",
    "workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cases that run at the same time.  [default: one per processor]",
)
TIMEOUT = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Give a case up after this time, counted anew for each seed.",
)
MEMORY = click.option(
    "--max-memory",
    "memory_bytes",
    type=Size(),
    metavar="SIZE",
    help="Memory that a worker may use beside what it starts with, as in 4G.",
)
ISOLATION = click.option(
    "--no-isolation",
    "isolate",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Run the cases in this process, for a debugger; a crash ends the run.",
)


def threads(default: int | Callable[[], int], words: str) -> Option:
    """The option for the CPU threads of a worker."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        default=default,
        metavar="N",
        help=f"CPU threads of a case.  [default: {words}]",
    )


def _processors() -> int:
    """Those that this process may use, which taskset or a container can make fewer than the machine has."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


THREADS = threads(1, "1")
ALL_THREADS = threads(_processors, "one per processor")
THREAD_COUNTS = click.option(
    "--threads",
    type=ThreadCounts(),
    default="1",
    show_default=True,
    metavar="N[,N...]",
    help="CPU threads of a case. With each further number the gradients must come out again.",
)
ALLOC = click.option(
    "--alloc",
    type=click.Choice([*ALLOCATIONS, ALL]),
    default=ALLOCATIONS[0],
    show_default=True,
    help="Where the gradients must come out again: in memory that ggml's graph allocator or scheduler uses again and "
    "again, as in applications. What is judged has memory of its own for every tensor.",
)


def mode(what: str) -> Option:
    """The --mode of a command that shows cases; `what` says what they are."""
    return click.option(
        "--mode",
        type=click.Choice(MODES),
        default="grad",
        show_default=True,
        metavar="MODE",
        help=f"{what}: {', '.join(MODES)}.",
    )


REFERENCE = click.option(
    "--reference",
    default="auto",
    show_default=True,
    metavar="DEVICE",
    help="What counts as right: a device, or numpy; auto: numpy for the CPU, the CPU for all others.",
)
LIMITS = click.option(
    "--limit",
    "limits",
    multiple=True,
    type=Limit(),
    metavar="NAME=VALUE",
    help="A bound of a metric, before the case's own, as in maa=1e-4. May be repeated.",
)

FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    metavar="FORM",
    help=f"What to print: {', '.join(FORMATS)}.",
)
OUTPUT = click.option(
    "--output",
    "outputs",
    multiple=True,
    type=FormFile(),
    metavar="FORM=FILE",
    help="Write a form to a file besides, as in json=run.json. May be repeated.",
)
COLOR = click.option(
    "--color/--no-color", "color", default=None, help="Force or forbid colour.  [default: on a terminal]"
)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="A line for every case, and whole logs.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Only what failed and the summary.")
REPORT = (FORMAT, OUTPUT, COLOR, VERBOSE, QUIET)


def options(*declared: Option) -> Callable[[F], F]:
    """Give a command these options, in the order in which its help shall show them."""

    def decorate(function: F) -> F:
        for option in reversed(declared):
            function = option(function)
        return function

    return decorate
