"""Cases x targets x mode to jobs."""

from collections.abc import Sequence

from gradcheck.model.case import Case
from gradcheck.model.errors import UsageError
from gradcheck.model.job import Job, Settings
from gradcheck.model.place import Place
from gradcheck.model.run import DeviceInfo


def plan(cases: Sequence[Case], targets: Sequence[str], mode: str, settings: Settings, timeout_s: float) -> list[Job]:
    """One job for each case on each target, target by target, in the order of the cases."""
    return [
        Job(index, mode, case, target, settings, timeout_s)
        for index, (target, case) in enumerate((target, case) for target in targets for case in cases)
    ]


def preflight(cases: Sequence[Case], target: str, settings: Settings, timeout_s: float) -> list[Job]:
    """One job for each family that only builds its first case's graph, so that a slip shows before the run."""
    first: dict[Place, Case] = {}
    for case in cases:
        first.setdefault(case.place, case)
    return [Job(index, "graph", case, target, settings, timeout_s) for index, case in enumerate(first.values())]


def choose_targets(wanted: Sequence[str], devices: Sequence[DeviceInfo], mode: str, reference: str) -> list[str]:
    """Names of the devices that `-b` means: each word matches a device name, a registry or a type, without case.

    Without `-b`: every device; for eval every one but the reference, since it would be compared with itself.
    Raises UsageError, with the list of devices, for a word that matches none.
    """
    if not wanted:
        chosen = [d.name for d in devices if mode != "eval" or d.name.lower() != reference.lower()]
        if not chosen:
            raise UsageError(
                f"the only device is the reference {reference} itself; name a target with -b "
                f"(-b {reference} compares it with itself), or build ggml with another backend"
            )
        return chosen
    found: dict[str, None] = {}
    for word in wanted:
        matches = [d.name for d in devices if word.lower() in (d.name.lower(), d.registry.lower(), d.type.lower())]
        if not matches:
            listed = "; ".join(f"{d.name} ({d.registry}, {d.type})" for d in devices)
            raise UsageError(f"no device matches {word}; this ggml has {listed or 'none'}")
        found.update(dict.fromkeys(matches))
    return list(found)
