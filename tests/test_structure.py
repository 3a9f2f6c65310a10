"""The shape of the project: who imports whom, how large files are, what is documented."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gradcheck"

# package -> the packages of ours that it may import. `language` holds no knowledge of ggml or of files.
ALLOWED: dict[str, set[str]] = {
    "model": set(),
    "language": {"model"},
    "cases": {"model", "language", "variants"},
    "variants": {"model", "language"},
    "plan": {"model"},
    "coverage": {"model"},
    "flakiness": {"model"},
    "runner": {"model"},
    "numerics": {"model"},
    "reference": {"model", "numerics", "language"},
    "modes": {"model", "numerics", "reference"},
    "bindings": {"model", "language"},
    "worker": {"model", "modes", "bindings", "reference", "language", "numerics"},
    "reports": {"model"},
    "api": {"model", "cases", "variants", "plan", "coverage", "flakiness", "runner", "reports"},
    "cli": {"model", "api", "reports", "variants"},
    "__main__": {"cli"},
}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base", "misc"}
# Loaded in the parent only where they are needed: the parent knows neither ggml nor NumPy.
PARENT = ("model", "language", "cases", "variants", "plan", "coverage", "flakiness", "runner", "api", "cli", "reports")
MAX_LINES = 300

FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    own = {name.split(".")[1] for name in imports(path) if name.startswith("gradcheck.")}
    own -= {part, "__version__"}
    assert own <= ALLOWED[part], f"{path} may not import {sorted(own - ALLOWED[part])}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_ggml_and_ctypes_have_one_home(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports(path)}
    if part_of(path) != "bindings":
        assert "ggml" not in tops
    if part_of(path) not in ("bindings", "worker"):
        assert "ctypes" not in tops
    if part_of(path) in PARENT:
        assert "numpy" not in tops


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_and_documented(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    assert path.stem not in FORBIDDEN_NAMES
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module says its duty in its docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_the_parent_stays_free_of_ggml_and_numpy() -> None:
    import subprocess
    import sys

    code = "import sys, gradcheck.api, gradcheck.cli; print(sorted({'ggml', 'numpy', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
