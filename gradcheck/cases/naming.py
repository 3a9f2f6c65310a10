"""How variables are printed: the spelling of the C++ tool, so that its log lines select cases here."""

import re
from collections.abc import Iterable, Mapping

from gradcheck.model.case import Value

_FIELD = re.compile(r"\{(\w+)\}")


def spell(value: Value) -> str:
    """One value: `%f` for floats, 0/1 for booleans, `[a,b]` for lists, anything else as it is."""
    if isinstance(value, tuple):
        return "[" + ",".join([str(item) if type(item) is int else spell(item) for item in value]) + "]"
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:f}" if isinstance(value, float) else str(value)


def join(variables: Iterable[tuple[str, Value]]) -> str:
    """`name=value,name=value`; a variable that is null is not printed."""
    return ",".join([f"{name}={spell(value)}" for name, value in variables if value is not None])


def fill(template: str, scope: Mapping[str, Value]) -> str:
    """A template with each `{name}` replaced. Raises KeyError for a name that the scope lacks."""
    return _FIELD.sub(lambda match: spell(scope[match[1]]), template)
