"""Where something stands in a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, printed as `file:line`."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
