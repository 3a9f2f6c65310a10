"""All mutants in one source, chosen at run time: mutant schemata (Untch, Offutt, Harrold 1993).

Where a mutant replaces `old` by `new`, the patched source has both, and an int of the library decides:

    (GRADCHECK_MUTANT(17) ? (new) : (old))
    if (GRADCHECK_MUTANT(17)) { new } else { old }

so one build serves all mutants. Mutants with the same place are alternatives there. The library reads the name from the
environment variable GRADCHECK_MUTANT while it is loaded; without it nothing differs. An unknown name ends the process.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants.mutant import Form, InvalidMutants, Mutant

_RUNTIME = Path(__file__).parent / "runtime"
_HEADER = "gradcheck-mutants.h"
_TABLE = "gradcheck-mutants-table.h"
_DEFINITIONS = "gradcheck-mutants.c.inc"
_LABEL = re.compile(r"^\s*case ", re.MULTILINE)
_CORE = "src/ggml.c"  # its library is loaded before all others


@dataclass(frozen=True, slots=True)
class _Site:
    start: int
    end: int
    form: Form


def patched(files: dict[str, str], mutants: Sequence[Mutant]) -> dict[str, str]:
    """The sources with all mutants in them, and the files they include besides.

    files: text by path below ggml's root; must have src/ggml.c and the file of every mutant
    mutants: numbered from 1 in this order

    Raises InvalidMutants where a mutant does not fit its source.
    """
    numbers = {mutant.name: number for number, mutant in enumerate(mutants, 1)}
    done = {name: _file(name, files[name], mutants, numbers) for name in {_CORE, *(m.file for m in mutants)}}
    done[_CORE] += f'\n#include "{_DEFINITIONS}"\n'
    done[f"src/{_HEADER}"] = (_RUNTIME / _HEADER).read_text()
    done[f"src/{_DEFINITIONS}"] = (_RUNTIME / _DEFINITIONS).read_text()
    done[f"src/{_TABLE}"] = "".join(f'    "{mutant.name}",\n' for mutant in mutants)
    return done


def _file(name: str, text: str, mutants: Sequence[Mutant], numbers: dict[str, int]) -> str:
    sites: dict[_Site, list[Mutant]] = {}
    for mutant in mutants:
        if mutant.file == name:
            sites.setdefault(_find(text, mutant), []).append(mutant)
    ordered = sorted(sites, key=lambda site: site.start)
    for one, other in itertools.pairwise(ordered):
        if other.start < one.end:
            names = f"{sites[one][0].name} and {sites[other][0].name}"
            raise InvalidMutants(f"{names} overlap and are not the same place")
    for site in reversed(ordered):
        text = text[: site.start] + _choice(text[site.start : site.end], sites[site], numbers) + text[site.end :]
    return f'#include "{_HEADER}"\n{text}' if sites else text


def _find(text: str, mutant: Mutant) -> _Site:
    """The place of a mutant: the first `old` after its anchors, in their function and in the `case` of an anchor."""
    if text.count(mutant.anchors[0]) != 1:
        many = text.count(mutant.anchors[0])
        raise InvalidMutants(f"{mutant.name}: `{mutant.anchors[0]}` is {many} times in {mutant.file}, not once")
    position = text.index(mutant.anchors[0])
    function_end = text.find("\n}", position)
    limit = len(text) if function_end < 0 else function_end + 2
    for anchor in mutant.anchors[1:]:
        position = text.find(anchor, position, limit)
        if position < 0:
            raise InvalidMutants(f"{mutant.name}: `{anchor}` is not in {mutant.file} after the anchors before it")
        label = _LABEL.search(text, position + len(anchor), limit)
        if anchor.startswith("case ") and label:
            limit = label.start()
    words = r"\s+".join(map(re.escape, mutant.old.split()))
    found = re.compile(rf"(?<!\w)(?:{words})(?!\w)" if mutant.old[0].isalnum() else words).search(text, position, limit)
    if found is None:
        raise InvalidMutants(f"{mutant.name}: `{mutant.old}` is not in {mutant.file} after its anchors")
    return _Site(found.start(), found.end(), mutant.form)


def _choice(old: str, mutants: Sequence[Mutant], numbers: dict[str, int]) -> str:
    text = f"({old})" if mutants[0].form is Form.EXPRESSION else f"{{ {old} }}"
    for mutant in reversed(mutants):
        condition = f"GRADCHECK_MUTANT({numbers[mutant.name]})"
        if mutant.form is Form.EXPRESSION:
            text = f"({condition} ? ({mutant.new}) : {text})"
        else:
            text = f"if ({condition}) {{ {mutant.new} }} else {text}"
    return text
