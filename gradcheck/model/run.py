"""The record of a whole run: what `--format json` writes and every report reads."""

from dataclasses import dataclass

from gradcheck.model.flakiness import Flakiness
from gradcheck.model.job import Settings
from gradcheck.model.result import Result

#: Raised whenever a reader of older records would misread new ones.
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device of the loaded ggml, as `gradcheck devices` lists it; memory in bytes, 0 where unknown."""

    name: str
    description: str
    registry: str
    type: str
    memory_free: int
    memory_total: int


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """The ggml that the workers loaded; `ops` are the names that its tensors can have as ops."""

    ggml_version: str
    ggml_commit: str
    ggml_python_version: str
    path: str
    devices: tuple[DeviceInfo, ...]
    ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run was asked to do and with what it ran; times are ISO 8601 in UTC.

    left_out: selected cases that were not run, since they are large and nobody asked for those
    """

    mode: str
    command: tuple[str, ...]
    targets: tuple[str, ...]
    settings: Settings
    jobs: int
    cases: int
    library: LibraryInfo
    gradcheck_version: str
    python_version: str
    numpy_version: str
    platform: str
    started: str
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A finished (or interrupted) run; results are in the order of the cases.

    flakiness: what many seeds say of it; None where every case had one
    """

    info: RunInfo
    results: tuple[Result, ...]
    elapsed_s: float
    interrupted: bool = False
    schema_version: int = SCHEMA_VERSION
    flakiness: Flakiness | None = None
