"""Load ggml once, take over its abort and its log, and say what was loaded."""

import ctypes
import functools
import importlib.metadata
import os
from collections.abc import Hashable
from typing import Any

from gradcheck.bindings.abort import Builder, park_builder
from gradcheck.model.errors import LibraryError
from gradcheck.model.run import DeviceInfo, LibraryInfo

#: An input, and what only stands for one of several ops.
_NO_OPS = frozenset({"NONE", "UNARY", "GLU"})
_REMEDY = "install a C and C++ compiler and run `pip install --force-reinstall --no-cache-dir ggml-python`"


class Library:
    """The one libggml of this process.

    ggml: the module of ggml-python, whose functions keep their C names
    builder: where everything runs that may abort
    no_rule: why there is no backward for graphs of a structure; each abort costs a thread, so none is repeated
    """

    def __init__(self, ggml: Any) -> None:
        self.ggml = ggml
        self.builder = Builder()
        self.no_rule: dict[Hashable, str] = {}
        # ggml keeps bare pointers to them.
        self._on_abort = ggml.ggml_abort_callback_t(_on_abort)
        self._on_log = ggml.ggml_log_callback(_Log(ggml))
        ggml.ggml_set_abort_callback(self._on_abort)
        ggml.ggml_log_set(self._on_log, None)

    @functools.cached_property
    def type_ids(self) -> dict[str, int]:
        """The number of every type that has a name and a size."""
        ids = {}
        for number in range(self.ggml.GGML_TYPE_COUNT):
            name = self.ggml.ggml_type_name(number)
            if name and self.ggml.ggml_type_size(number):
                ids[name.decode()] = number
        return ids

    @functools.cached_property
    def type_names(self) -> dict[int, str]:
        """The name of every type, by its number."""
        return {number: name for name, number in self.type_ids.items()}

    def devices(self) -> list[Any]:
        """The handles of the devices, in ggml's order."""
        count = self.ggml.ggml_backend_dev_count()
        return [self.ggml.ggml_backend_dev_get(index) for index in range(count)]


@functools.cache
def load() -> Library:
    """Import ggml and take it over, once for this process. Raises LibraryError."""
    # Without it an abort starts a debugger on the process, which takes seconds.
    os.environ["GGML_NO_BACKTRACE"] = "1"
    try:
        module = _import_ggml()
    except ImportError as error:
        raise LibraryError(f"ggml-python is not installed ({error}); {_REMEDY}") from None
    except (OSError, RuntimeError, AttributeError) as error:
        raise LibraryError(f"ggml's shared library does not load ({error}); {_REMEDY}") from None
    return Library(module)


def library_info(library: Library | None = None) -> LibraryInfo:
    """Versions, path and devices of the loaded ggml."""
    library = library or load()
    ggml = library.ggml
    return LibraryInfo(
        ggml_version=_text(ggml.ggml_version()),
        ggml_commit=_text(ggml.ggml_commit()),
        ggml_python_version=_package_version(),
        path=os.path.realpath(_path(ggml)),
        devices=tuple(device_info(ggml, device) for device in library.devices()),
        ops=op_names(ggml),
    )


def op_names(ggml: Any) -> tuple[str, ...]:
    """Every op as ggml_op_desc names it: unary ops and gated units by themselves, and not what is no op."""
    kinds = (
        (ggml.ggml_op_name, ggml.GGML_OP_COUNT),
        (ggml.ggml_unary_op_name, ggml.GGML_UNARY_OP_COUNT),
        (ggml.ggml_glu_op_name, ggml.GGML_GLU_OP_COUNT),
    )
    names = (_text(name_of(number)) for name_of, count in kinds for number in range(count))
    return tuple(name for name in names if name not in _NO_OPS)


def device_memory(ggml: Any, device: Any) -> tuple[int, int]:
    """Free and total bytes of a device as ggml says, 0 where it does not know."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def _import_ggml() -> Any:
    import ggml

    return ggml


def _on_abort(message: bytes) -> None:
    text = (message or b"").decode(errors="replace")
    park_builder(text)
    os.write(2, f"ggml-abort: {' '.join(text.split())}\n".encode())


class _Log:
    """Passes warnings and errors on to fd 2 and drops the rest; a continuation goes where its line went."""

    def __init__(self, ggml: Any) -> None:
        self._loud = (ggml.GGML_LOG_LEVEL_WARN, ggml.GGML_LOG_LEVEL_ERROR)
        self._continued = ggml.GGML_LOG_LEVEL_CONT
        self._passing = False

    def __call__(self, level: int, text: bytes, _user: Any) -> None:
        if level != self._continued:
            self._passing = level in self._loud
        if self._passing:
            os.write(2, text or b"")


def device_info(ggml: Any, device: Any, name: str = "") -> DeviceInfo:
    """What ggml says of a device, under a name of our own if one is given."""
    free, total = device_memory(ggml, device)
    registry = ggml.ggml_backend_dev_backend_reg(device)
    return DeviceInfo(
        name=name or _text(ggml.ggml_backend_dev_name(device)),
        description=_text(ggml.ggml_backend_dev_description(device)).strip(),
        registry=_text(ggml.ggml_backend_reg_name(registry)) if registry else "",
        type=_device_type(ggml, ggml.ggml_backend_dev_type(device)),
        memory_free=free,
        memory_total=total,
    )


def _device_type(ggml: Any, number: int) -> str:
    prefix = "GGML_BACKEND_DEVICE_TYPE_"
    for name in dir(ggml):
        if name.startswith(prefix) and getattr(ggml, name) == number:
            return name.removeprefix(prefix)
    return f"type {number}"


def _path(ggml: Any) -> str:
    libraries = getattr(ggml.ggml.lib, "_libraries", None) or [ggml.ggml.lib]
    return str(getattr(libraries[0], "_name", "") or ggml.__file__)


def _package_version() -> str:
    try:
        return importlib.metadata.version("ggml-python")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")
