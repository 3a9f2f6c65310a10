"""What a worker works with: the modes it knows and the devices it has opened."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcheck.model.case import Case
from gradcheck.model.errors import GradcheckError, LibraryError
from gradcheck.model.job import NUMPY
from gradcheck.model.result import Outcome
from gradcheck.model.run import LibraryInfo
from gradcheck.model.server import Server
from gradcheck.modes.bench import Bench, Device

Mode = Callable[[Case, Bench], Outcome]


@dataclass(frozen=True)
class Equipment:
    """The modes by name, and ggml's side of a worker: `open_device(name, threads)` and `library_info(...)`."""

    modes: Mapping[str, Mode]
    open_device: Callable[[str, int], Device]
    library_info: Callable[..., LibraryInfo]
    _devices: dict[tuple[str, int], Device] = field(default_factory=dict)

    def device(self, name: str, threads: int) -> Device:
        """A device, opened when it is first asked for and kept as long as the worker lives."""
        if (name, threads) not in self._devices:
            self._devices[name, threads] = self._reference() if name == NUMPY else self.open_device(name, threads)
        return self._devices[name, threads]

    def inspect(self, servers: Sequence[Server] = ()) -> LibraryInfo:
        """The loaded ggml, its devices and those of RPC servers. Raises LibraryError."""
        return self.library_info(servers) if servers else self.library_info()

    @staticmethod
    def _reference() -> Device:
        from gradcheck.reference import ReferenceDevice  # only eval needs it

        return ReferenceDevice()


def equip(config: Mapping[str, Any]) -> Equipment:
    """Import everything that `config` (PoolOptions.config) names. Raises LibraryError with the way out."""
    try:
        if config["preload"]:
            _named(config["preload"])()
        devices = importlib.import_module(config["devices"])
        modes = _named(config["modes"])
    except GradcheckError as error:
        raise LibraryError(str(error)) from error
    except (ImportError, OSError, AttributeError) as error:
        remedy = "; install it with `python -m pip install ggml-python`" if _is_ggml(error) else ""
        raise LibraryError(f"ggml cannot be loaded ({type(error).__name__}: {error}){remedy}") from error
    return Equipment(modes, devices.open_device, devices.library_info)


def _named(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _is_ggml(error: Exception) -> bool:
    return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "ggml"
