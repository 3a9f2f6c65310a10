"""Where the case files are: shipped inside the wheel, or beside the package in a source tree."""

from pathlib import Path

from gradcheck.model.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = _PACKAGE / "shipped_cases"
_SOURCE_TREE = _PACKAGE.parent / "cases"
#: What is known of variants, whatever their family: no cases.
_KNOWN = "known_of_variants.yaml"


def shipped_files() -> list[tuple[Path, str]]:
    """Every shipped case file with the name to show for it, in a stable order."""
    root = _root()
    paths = [path for path in sorted(root.rglob("*.yaml")) if path.name != _KNOWN]
    files = [(path, f"cases/{path.relative_to(root).as_posix()}") for path in paths]
    if not files:
        raise UsageError("no shipped cases were found; the installation is incomplete: install gradcheck again")
    return files


def known_file() -> tuple[Path, str]:
    """The file of known failures of variants, with the name to show for it."""
    return _root() / _KNOWN, f"cases/{_KNOWN}"


def _root() -> Path:
    return _SHIPPED if _SHIPPED.is_dir() else _SOURCE_TREE


def given_files(paths: tuple[str, ...]) -> list[tuple[Path, str]]:
    """The case files that a user named; a folder stands for every .yaml file in it. Raises UsageError."""
    found: list[tuple[Path, str]] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            inside = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
            if not inside:
                raise UsageError(f"{text}: a folder without a .yaml file")
            found += [(file, str(file)) for file in inside]
        elif path.exists():
            found.append((path, text))
        else:
            raise UsageError(f"{text}: no such file")
    return found
