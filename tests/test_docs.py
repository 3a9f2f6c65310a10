"""The examples of the documents work."""

import re
import shlex
from pathlib import Path

import click
import pytest

from gradcheck.cases import load_families
from gradcheck.cases.expand import expand

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def families() -> list[str]:
    fenced = [block for path in DOCUMENTS for block in blocks(path, "yaml")]
    return [block for block in fenced if "graph:" in block]


@pytest.mark.parametrize("text", families())
def test_a_family_in_a_document_is_sound(text: str, tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(text)
    assert expand(load_families((str(file),)), "grad")


def commands() -> list[str]:
    found = []
    for path in DOCUMENTS:
        for line in path.read_text().splitlines():
            if line.startswith("    gradcheck "):
                found.append(line.split("#")[0].strip())
    return found


def test_there_are_commands_to_check() -> None:
    assert len(commands()) > 5


@pytest.mark.parametrize("line", commands())
def test_a_command_in_a_document_is_understood(line: str) -> None:
    """Its subcommand and options exist; nothing is run."""
    from gradcheck.cli.main import commands as cli

    words = shlex.split(line)[1:]
    if words[0].startswith("-"):
        return
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, f"no command {words[0]}"
    if words[1:] and not any(word in ("|", ">", "...") for word in words):
        words = [word for word in words if word != "my_op.yaml"]
        known = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
        for word in words[1:]:
            if word.startswith("-"):
                assert word.split("=")[0] in known, f"{words[0]} has no option {word}"


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
