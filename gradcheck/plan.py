"""Cases x targets x mode to jobs, and which devices a user means."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gradcheck.model.case import Case
from gradcheck.model.errors import UsageError
from gradcheck.model.job import AUTO, CPU, LARGE, NUMPY, Job, Settings
from gradcheck.model.place import Place
from gradcheck.model.run import DeviceInfo
from gradcheck.model.server import Server, is_server, parse_server


def plan(
    cases: Sequence[Case], targets: Sequence[DeviceInfo], mode: str, settings: Settings, timeout_s: float
) -> list[Job]:
    """One job for each case on each target, target by target, in the order of the cases."""
    jobs: list[Job] = []
    for target in targets:
        usual = replace(settings, reference=reference_for(target, settings.reference))
        # The CPU is no reference for what it gets wrong itself.
        independent = replace(usual, reference=NUMPY)
        stand_in = mode == "eval" and settings.reference.lower() == AUTO and not settings.backward
        for case in cases:
            own = independent if stand_in and usual.reference == CPU and _wrong_on_cpu(case) else usual
            jobs.append(Job(len(jobs), mode, case, target.name, own, timeout_s))
    return jobs


def of_usual_size(cases: Sequence[Case], named: Collection[str]) -> list[Case]:
    """The cases that differentiate no more than LARGE elements, and those whose id is `named`; all if that leaves none.

    The others take most of the time of a run, and seldom see what these do not.
    """
    usual = [case for case in cases if case.differentiated <= LARGE or case.id in named]
    return usual or list(cases)


def plan_graphs(cases: Iterable[Case], target: str, mode: str = "graph") -> list[Job]:
    """One job for each case that only builds its graph."""
    return [Job(index, mode, case, target, Settings()) for index, case in enumerate(cases)]


def first_of_families(cases: Sequence[Case]) -> list[Case]:
    """One case of each family: a slip in a case file shows in any of its graphs."""
    first: dict[Place, Case] = {}
    for case in cases:
        first.setdefault(case.place, case)
    return list(first.values())


def reference_for(target: DeviceInfo, wanted: str) -> str:
    """What a target is compared with: AUTO means NumPy for the CPU, and the CPU for everything else."""
    if wanted.lower() == NUMPY:
        return NUMPY
    if wanted.lower() != AUTO:
        return wanted
    return NUMPY if target.type.upper() == CPU else CPU


def _wrong_on_cpu(case: Case) -> bool:
    """Whether the CPU's forward result is known to be wrong."""
    return any(
        entry.mode == "eval" and entry.concerns(case.variant) and fnmatchcase(CPU, entry.target.upper())
        for entry in case.known
    )


def check_reference(wanted: str, devices: Sequence[DeviceInfo]) -> None:
    """Raises UsageError, with what there is, for a reference that is neither a device, NumPy nor auto."""
    known = [AUTO, NUMPY, *(device.name for device in devices)]
    if wanted.lower() not in (name.lower() for name in known):
        raise UsageError(f"no reference {wanted}; there are {', '.join(known)}")


def servers_of(words: Iterable[str]) -> tuple[Server, ...]:
    """The RPC servers among words that name devices, each once. Raises UsageError for one that is no address."""
    return tuple(dict.fromkeys(parse_server(word) for word in words if is_server(word)))


def choose_targets(wanted: Sequence[str], devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """The devices that `-b` means: each word matches a device name, a registry or a type, without case.

    devices: those of this machine's ggml and those of the servers that are named
    Without `-b`: every device. Raises UsageError, with the list of devices, for a word that matches none.
    """
    if not wanted:
        return list(devices)
    found: dict[str, DeviceInfo] = {}
    for given in wanted:
        word = str(parse_server(given)) if is_server(given) else given
        matches = [d for d in devices if word.lower() in (d.name.lower(), d.registry.lower(), d.type.lower())]
        if not matches:
            listed = "; ".join(f"{d.name} ({d.registry}, {d.type})" for d in devices)
            raise UsageError(f"no device matches {word}; this ggml has {listed or 'none'}")
        found.update((device.name, device) for device in matches)
    return list(found.values())
