"""The table of a bench: a line a mutant, and the counts."""

import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mutants.result import Fate, Result
from benchmarks.processes import processor_name, processors

_BEGIN = "<!-- generated: make mutants -->"
_END = "<!-- end of what is generated -->"
_SHOWN = 110  # characters of a reason


def line(result: Result) -> str:
    """For the terminal."""
    seconds = sum(look.seconds for look in result.looks or ()) + (result.cpp.seconds if result.cpp else 0.0)
    return f"{result.mutant.name}: gradcheck {_ours(result)}, C++ {_theirs(result)}; {seconds:.0f} s"


def facts(rounds: int, cpp_limit_s: float) -> list[str]:
    """Where and with what."""
    version = importlib.metadata.version
    return [
        f"{processor_name()}, {processors()} processors, {platform.system()} {platform.release()}",
        f"ggml-python {version('ggml-python')}, gradcheck {version('gradcheck')}, Python {platform.python_version()}, "
        f"NumPy {version('numpy')}",
        f"the C++ tool ran {rounds} times for each mutant that it did not see before, {cpp_limit_s:g} s a run at most",
    ]


def summary_lines(results: Sequence[Result]) -> list[str]:
    """The counts over all that is not equivalent."""
    real = [result for result in results if not result.mutant.equivalent]
    plain = sum(result.catching is not None and not result.catching.options for result in real)
    ours = sum(result.ours is Fate.CAUGHT for result in real)
    theirs = sum(result.theirs is Fate.CAUGHT for result in real)
    both = sum(result.ours is Fate.CAUGHT and result.theirs is Fate.CAUGHT for result in real)
    ran = sum(result.theirs is not Fate.NOT_RUN for result in real)
    return [
        f"{len(results)} mutants, {len(results) - len(real)} of them equivalent for gradients, {len(real)} to be seen",
        f"gradcheck sees {ours}: {plain} as it comes and {ours - plain} with more options",
        f"the C++ tool sees {theirs} of {ran}; {both} are seen by both",
    ]


def render_markdown(results: Sequence[Result], lines: Sequence[str]) -> str:
    """The counts, the facts, the table."""
    head = "| mutant | kind | ops | what is wrong | gradcheck | C++ |\n| --- | --- | --- | --- | --- | --- |"
    rows = [
        f"| {_cell(f'`{result.mutant.name}`', result.mutant.kind, ', '.join(result.mutant.ops), result.mutant.why)} "
        f"| {_cell(_ours(result), _theirs(result))} |"
        for result in results
    ]
    parts = [summary_lines(results), lines, _kinds(results)]
    bullets = ["\n".join(f"- {text}" for text in part) for part in parts[:2]]
    missed = [f"- `{r.mutant.name}`: {r.wrong}" for r in results if r.wrong]
    equal = [f"- `{r.mutant.name}`: {r.mutant.equivalent}" for r in results if r.mutant.equivalent]
    return "\n\n".join(
        [
            *bullets,
            "### By kind",
            "\n".join(parts[2]),
            "### Not seen by gradcheck",
            "\n".join(missed) or "None.",
            "### Equivalent for gradients",
            "\n".join(equal) or "None.",
            "### Each mutant",
            "\n".join([head, *rows]),
        ]
    )


def update(path: Path, generated: str) -> None:
    """Replace what was generated in a page, and leave the text around it; a new page has nothing else."""
    old = path.read_text() if path.exists() else f"{_BEGIN}\n{_END}\n"
    if _BEGIN not in old or _END not in old:
        old = f"{old.rstrip()}\n\n{_BEGIN}\n{_END}\n"
    before, after = old.split(_BEGIN)[0], old.split(_END)[1]
    path.write_text(f"{before}{_BEGIN}\n\n{generated}\n\n{_END}{after}")


def _kinds(results: Sequence[Result]) -> list[str]:
    rows = ["| kind | mutants | gradcheck | C++ |", "| --- | ---: | ---: | ---: |"]
    real = [result for result in results if not result.mutant.equivalent]
    for kind in sorted({result.mutant.kind for result in real}):
        these = [result for result in real if result.mutant.kind == kind]
        counts = (len(these), sum(r.ours is Fate.CAUGHT for r in these), sum(r.theirs is Fate.CAUGHT for r in these))
        rows.append(f"| {kind} | {' | '.join(map(str, counts))} |")
    return rows


def _ours(result: Result) -> str:
    look = result.catching
    if look is None:
        return result.ours
    counts = ", ".join(f"{number} {status}" for status, number in sorted(look.statuses.items()))
    options = f" with `{look.options}`" if look.options else ""
    return f"{counts} of {look.cases}{options}: {_short(look.reason)}"


def _theirs(result: Result) -> str:
    cpp = result.cpp
    if cpp is None:
        return result.theirs
    if not cpp.caught:
        note = ", compares nothing" if not cpp.compared else ", until the time limit" if cpp.limited else ""
        return f"{result.theirs}{note}"
    return f"{len(cpp.failed)} FAIL" if cpp.failed else f"abort: {_short(cpp.abort)}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]}..."


def _cell(*texts: str) -> str:
    return " | ".join(text.replace("|", "\\|") for text in texts)
