"""Known faults in ggml: which does gradcheck see, which does ggml's C++ tool?

    python benchmarks/mutants/bench.py --output docs/mutants.md --output mutants.json

All mutations of `list/*.yaml` are compiled into one ggml, minutes the first time, and switched on one by one.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cpp_tool import BuildFailed  # noqa: E402
from benchmarks.mutants.build import build_mutants, last_build  # noqa: E402
from benchmarks.mutants.cpp_runs import CppLook, CppTool  # noqa: E402
from benchmarks.mutants.gradcheck_runs import Gradcheck, Look  # noqa: E402
from benchmarks.mutants.mutant import InvalidMutants, Mutant, chosen, load  # noqa: E402
from benchmarks.mutants.report import facts, line, render_markdown, summary_lines, update  # noqa: E402
from benchmarks.mutants.result import Result, read, write  # noqa: E402

CACHE = ROOT / "benchmarks" / ".cache"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 1 if gradcheck misses a mutant, 2 where something is missing."""
    options = _parser().parse_args(arguments)
    try:
        every = load()
        mutants = chosen(every, [name for text in options.mutant for name in text.split(",")])
        built = last_build(CACHE) if options.no_build else build_mutants(every, CACHE, options.source, options.jobs)
        earlier = read(options.resume) if options.resume else {}
    except (BuildFailed, InvalidMutants, OSError) as problem:
        print(f"mutants: {problem}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        ours = Gradcheck(built, Path(scratch), options.limit, options.jobs)
        theirs = CppTool(built, Path(scratch), options.cpp_limit, options.rounds)
        results: list[Result] = []
        for number, mutant in enumerate(mutants, 1):
            results.append(_result(mutant, options.tool, ours, theirs, earlier.get(mutant.name, (None, None))))
            print(f"[{number}/{len(mutants)}] {line(results[-1])}", file=sys.stderr, flush=True)
            _save(results, options, done=number == len(mutants))
    print("\n".join(summary_lines(results)))
    wrong = [result for result in results if result.wrong]
    for result in wrong:
        print(f"{result.mutant.name}: {result.wrong}")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutant", action="append", default=[], metavar="NAME[,NAME...]", help="only these")
    parser.add_argument("--tool", choices=("both", "gradcheck", "cpp"), default="both", help="run only this one")
    parser.add_argument("--source", type=Path, metavar="DIR", help="ggml's root; else that of ggml-python's sdist")
    parser.add_argument("--no-build", action="store_true", help="use the last build as it is")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of the C++ tool (3)")
    parser.add_argument("--limit", type=float, default=300.0, metavar="S", help="time limit of a gradcheck run (300)")
    parser.add_argument("--cpp-limit", type=float, default=60.0, metavar="S", help="the same of the C++ tool (60)")
    parser.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="compilers, and cases at a time (2)")
    parser.add_argument("--resume", type=Path, metavar="FILE.json", help="take runs over from an earlier bench")
    parser.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help="FILE.md or FILE.json")
    return parser


def _result(
    mutant: Mutant,
    tool: str,
    ours: Gradcheck,
    theirs: CppTool,
    earlier: tuple[tuple[Look, ...] | None, CppLook | None],
) -> Result:
    looks, cpp = earlier
    if looks is None and tool != "cpp":
        looks = ours.looks(mutant)
    if cpp is None and tool != "gradcheck":
        cpp = theirs.look(mutant)
    return Result(mutant, looks, cpp)


def _save(results: Sequence[Result], options: argparse.Namespace, *, done: bool) -> None:
    """The JSON grows with every mutant, so that an interrupted bench can be resumed."""
    for path in options.output:
        if path.suffix == ".json":
            write(path, results)
        elif done:
            update(path, render_markdown(results, facts(options.rounds, options.cpp_limit)))


if __name__ == "__main__":
    sys.exit(main())
