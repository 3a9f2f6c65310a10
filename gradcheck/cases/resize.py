"""A case with rows of another length: its family made anew with another value for the variable that they follow."""

import functools
from collections.abc import Iterator

from gradcheck.cases.expand import case_of
from gradcheck.cases.family import Family
from gradcheck.cases.select import Selection, load_families
from gradcheck.model.case import Case, Value
from gradcheck.model.errors import CaseFileError


class Resizer:
    """Resizes cases of a selection in a mode. Families are read again when the first one is asked for."""

    def __init__(self, selection: Selection, mode: str) -> None:
        self._selection, self._mode = selection, mode

    def __call__(self, case: Case, size: int) -> Case | None:
        """The case with rows of `size` elements, in all else as its family makes it; None where there is none.

        The first variable is taken that changes ne[0] of every input of which it is that of the first one, and
        nothing else of any input.
        """
        for family in self._families.get((str(case.place), case.op), ()):
            for changed in _changed(case.vars, size):
                made = _made(family, self._mode, changed)
                if made is not None and _follows(case, made, size):
                    return made
        return None

    @functools.cached_property
    def _families(self) -> dict[tuple[str, str], list[Family]]:
        found: dict[tuple[str, str], list[Family]] = {}
        for family in load_families(self._selection.files):
            found.setdefault((str(family.place), family.op), []).append(family)
        return found


def _changed(variables: tuple[tuple[str, Value], ...], size: int) -> Iterator[dict[str, Value]]:
    """The variables with one of them, a whole number or a list of such, changed in its first place."""
    for name, value in variables:
        if type(value) is int:
            yield {**dict(variables), name: size}
        elif isinstance(value, tuple) and value and all(type(item) is int for item in value):
            yield {**dict(variables), name: (size, *value[1:])}


def _made(family: Family, mode: str, variables: dict[str, Value]) -> Case | None:
    try:
        return case_of(family, mode, variables)
    except CaseFileError:  # the family did not reckon with this value
        return None


def _follows(case: Case, made: Case, size: int) -> bool:
    usual = case.inputs[0].ne[0]
    if [declared.name for declared in made.inputs] != [declared.name for declared in case.inputs]:
        return False
    return all(
        new.ne == ((size if old.ne[0] == usual else old.ne[0]), *old.ne[1:])
        for old, new in zip(case.inputs, made.inputs, strict=True)
    )
