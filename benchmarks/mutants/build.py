"""One build of ggml with all mutants in it: its libraries for gradcheck, and the C++ tool linked to the same ones."""

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpp_tool import TOOL, BuildFailed, compile_tool, download
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.patch import patched

_LIBRARIES = ("libggml.so", "libggml-base.so", "libggml-cpu.so")


@dataclass(frozen=True, slots=True)
class Built:
    """What runs mutants.

    cpp: the C++ tool
    overlay: a folder for PYTHONPATH with a package `ggml`: ggml-python's own files beside the mutated libraries
    """

    cpp: Path
    overlay: Path


def build_mutants(mutants: Sequence[Mutant], cache: Path, source: Path | None, jobs: int) -> Built:
    """Patch a copy of ggml and compile what changed. Raises BuildFailed, InvalidMutants.

    source: ggml's root; else that of the sdist of the installed ggml-python
    """
    source = source or download(cache)
    if not (source / "src" / "ggml.c").is_file():
        raise BuildFailed(f"{source}: this is not ggml's root, it has no src/ggml.c")
    home = cache / "mutants"
    copy = home / "source"
    if not copy.exists():
        shutil.copytree(source, copy)
    names = sorted({"src/ggml.c", *(mutant.file for mutant in mutants)})
    files = patched({name: (source / name).read_text() for name in names}, mutants)
    _unpatch(source, copy, keep=files)
    for name, text in files.items():
        _write(copy / name, text)
    tool = compile_tool(copy, home / "build", jobs)
    return Built(tool, _overlay(home))


def last_build(cache: Path) -> Built:
    """What was built before, as it is: several benches can run side by side. Raises BuildFailed."""
    home = cache / "mutants"
    tool = home / "build" / "bin" / TOOL
    if not tool.exists():
        raise BuildFailed("there is no build yet; run once without --no-build")
    return Built(tool, _overlay(home))


def _unpatch(source: Path, copy: Path, keep: dict[str, str]) -> None:
    """Bring files back that had mutants in an earlier build."""
    for path in (source / "src").rglob("*.[ch]*"):
        name = path.relative_to(source)
        if str(name) not in keep and path.is_file():
            _write(copy / name, path.read_text(errors="surrogateescape"))


def _write(path: Path, text: str) -> None:
    """A file that does not change is not compiled again."""
    if not path.exists() or path.read_text(errors="surrogateescape") != text:
        path.write_text(text, errors="surrogateescape")


def _overlay(home: Path) -> Path:
    """ggml-python loads the libraries in its own folder; so a folder of links takes its place."""
    found = importlib.util.find_spec("ggml")
    if found is None or found.origin is None:
        raise BuildFailed("ggml-python is not installed")
    package = home / "overlay" / "ggml"
    (package / "lib").mkdir(parents=True, exist_ok=True)
    for path in Path(found.origin).parent.iterdir():
        if path.name not in ("lib", "__pycache__"):
            _link(package / path.name, path)
    for name in _LIBRARIES:
        made = next((home / "build" / "src").rglob(name), None)
        if made is None:
            raise BuildFailed(f"the build left no {name}; mutants need shared libraries, as on Linux")
        _link(package / "lib" / name, made.resolve())
    return package.parent


def _link(path: Path, target: Path) -> None:
    """Another bench may be running from the same folder: what is right stays."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target)
