"""How much memory this process may still take, asked before a case takes it."""

import resource
from pathlib import Path

from gradcheck.model.errors import NoRoom


def room() -> int | None:
    """The bytes that the limit on this process's data (RLIMIT_DATA) leaves; None without a limit."""
    limit, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    return None if limit == resource.RLIM_INFINITY else max(limit - _used(), 0)


def demand_room(nbytes: int, purpose: str) -> None:
    """Raises NoRoom, with both figures, where `nbytes` for `purpose` are more than is left."""
    left = room()
    if left is not None and nbytes > left:
        raise NoRoom(f"{purpose} takes about {in_words(nbytes)}, and {in_words(left)} of the case's memory is left")


def in_words(nbytes: int) -> str:
    """A size in GiB, MiB or bytes."""
    if nbytes >= 2**20:
        return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"
    return f"{nbytes:,} bytes"


def _used() -> int:
    """What counts against the limit: private writable memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * resource.getpagesize()
