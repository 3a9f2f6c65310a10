"""ggml's functions by name, as the graph language calls them."""

import ctypes
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcheck.bindings.callbacks import CALLBACKS, callback, complete
from gradcheck.bindings.dtypes import type_id
from gradcheck.bindings.library import Library
from gradcheck.bindings.tensor import Tensor
from gradcheck.model.errors import InvalidCase
from gradcheck.model.nearest import did_you_mean

#: Setters that change an op after it was made; other functions without a result are not for graphs.
_SETTERS = ("_set_prec", "_set_hint", "_add_sinks")
_NUMBERS = ("row_size", "type_size", "blck_size", "element_size", "nelements", "nbytes", "nrows")
#: They take a context and give a tensor, and yet they are no ops: an input comes from `inputs`.
_NO_OPS = ("new_", "get_first_tensor", "get_next_tensor", "get_tensor", "dup_tensor", "opt_")
_OPS_ALL_THE_SAME = ("opt_step_",)
#: Parameters that ggml lets be absent; only there does a plain 0 stand for NULL, as in C.
_ABSENT = frozenset({"mask", "sinks", "c"})
_FILLED_IN = frozenset({"n_args", "userdata"})
#: ggml reads a fixed number of an array's items that the binding does not know.
_ARRAY_ROOM = 16
_SIGNED = (ctypes.c_int, ctypes.c_long, ctypes.c_longlong, ctypes.c_int8, ctypes.c_int16)
_UNSIGNED = (ctypes.c_uint, ctypes.c_ulong, ctypes.c_ulonglong, ctypes.c_uint8, ctypes.c_uint16)


@dataclass(frozen=True, slots=True)
class Function:
    """A callable function of ggml; `names` and `types` are without the context and what `complete` fills in."""

    name: str
    call: Callable[..., Any]
    names: tuple[str, ...]
    types: tuple[Any, ...]
    takes_context: bool
    gives_tensor: bool


class Functions:
    """The functions over one context. `doing` says which call ggml is in, should it abort."""

    def __init__(self, library: Library, context: Any) -> None:
        self._library = library
        self.context = context
        self._doing: tuple[Function, list[Any]] | None = None

    @property
    def doing(self) -> tuple[str, str]:
        """The last call as text, `mul_mat(a, b)`, and what its tensors are."""
        if self._doing is None:
            return "the graph", ""
        function, values = self._doing
        held = [(name, value, _tensors(value)) for name, value in zip(function.names, values, strict=True)]
        shown = ", ".join(name if tensors else repr(value) for name, value, tensors in held)
        shapes = (f"{name} is {' and '.join(map(str, tensors))}" for name, _, tensors in held if tensors)
        return f"{function.name}({shown})", ", ".join(shapes)

    def call(self, name: str, values: list[Any]) -> Any:
        """Call ggml_<name>. Raises InvalidCase for an unknown name and arguments that do not fit."""
        function = find(self._library, name)
        if len(values) != len(function.names):
            count = len(function.names)
            raise InvalidCase(
                f"{name} takes {count} argument{'s' * (count != 1)} ({', '.join(function.names)}), got {len(values)}"
            )
        arguments = [_convert(self._library, function, index, values) for index in range(len(values))]
        self._doing = function, values
        if function.takes_context:
            arguments.insert(0, self.context)
        result = function.call(*arguments)
        if not function.gives_tensor:
            return result
        if not result:
            raise InvalidCase(f"{name} made no tensor")
        return Tensor(self._library, result)

    def words(self, name: str) -> Any:
        """The value of an enum word without its GGML_, or a callback's name itself; KeyError where there is none."""
        return name if name in CALLBACKS else word(self._library, name)


def word(library: Library, name: str) -> int:
    """The value of an enum word: PREC_F32, OP_POOL_AVG, ROPE_TYPE_NEOX... Raises KeyError."""
    value = getattr(library.ggml, f"GGML_{name}", None)
    if type(value) is not int or not name.isupper():
        raise KeyError(name)
    return value


def find(library: Library, name: str) -> Function:
    """The function ggml_<name>. Raises InvalidCase with the nearest name that can be called."""
    functions = _functions(library)
    try:
        return functions[name]
    except KeyError:
        raise InvalidCase(f"ggml has no function `{name}` for graphs{did_you_mean(name, functions)}") from None


@functools.cache
def _functions(library: Library) -> dict[str, Function]:
    found = {}
    for full_name in dir(library.ggml):
        name = full_name.removeprefix("ggml_")
        function = _function(library.ggml, name) if name != full_name else None
        if function is not None:
            found[name] = function
    return found


def _function(ggml: Any, name: str) -> Function | None:
    call = getattr(ggml, f"ggml_{name}")
    # What the library lacks is a plain Python function that raises, without argtypes.
    types = getattr(call, "argtypes", None)
    if not isinstance(types, list | tuple) or not types:
        return None
    tensor = ctypes.POINTER(ggml.ggml_tensor)
    takes_context = types[0] is ggml.ggml_context_p_ctypes
    is_op = takes_context and call.restype is tensor
    if is_op and name.startswith(_NO_OPS) and not name.startswith(_OPS_ALL_THE_SAME):
        return None
    is_setter = types[0] is tensor and call.restype is None and name.endswith(_SETTERS)
    if not (is_op or is_setter or name in _NUMBERS):
        return None
    names = tuple(parameter.rstrip("_") for parameter in inspect.signature(call).parameters)
    pairs = list(zip(names, types, strict=True))[1 if is_op else 0 :]
    taken = [pair for pair in pairs if pair[0] not in _FILLED_IN]
    own_names, own_types = tuple(pair[0] for pair in taken), tuple(pair[1] for pair in taken)
    return Function(name, complete(call, names), own_names, own_types, is_op, is_op)


def _convert(library: Library, function: Function, index: int, values: list[Any]) -> Any:
    """The argument `index` of a call of `function` with `values`, as ctypes takes it."""
    kind = function.types[index]
    if kind in _SIGNED or kind in _UNSIGNED:
        return _integer(library, function, index, values[index])
    if kind in (ctypes.c_float, ctypes.c_double, ctypes.c_bool):
        return _number(function, index, values[index])
    return _pointer(library, function, index, values)


def _number(function: Function, index: int, value: Any) -> float | bool:
    name = function.names[index]
    if function.types[index] is ctypes.c_bool:
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        raise _wrong(function, name, "true or false", value)
    if isinstance(value, int | float):
        return float(value)
    raise _wrong(function, name, "a number", value)


def _pointer(library: Library, function: Function, index: int, values: list[Any]) -> Any:
    name, kind, value = function.names[index], function.types[index], values[index]
    tensor = ctypes.POINTER(library.ggml.ggml_tensor)
    if kind is tensor:
        return _tensor(function, index, value)
    if kind is ctypes.POINTER(tensor):
        if not isinstance(value, tuple) or len(_tensors(value)) < len(value):
            raise _wrong(function, name, "a list of tensors", value)
        return (tensor * len(value))(*(item.pointer for item in value))
    if hasattr(kind, "_argtypes_"):  # a type that CFUNCTYPE has made
        sources = [source for given in values for source in _tensors(given)]
        first = values[0]  # the output is like the first source, unless the call begins with a type
        written = first.type if isinstance(first, Tensor) else library.type_names.get(first, first)
        return callback(library, kind, value, sources, written)
    if issubclass(kind, ctypes._Pointer) and kind._type_ in (*_SIGNED, *_UNSIGNED, ctypes.c_float):
        return _array(function, index, value)
    raise InvalidCase(f"{function.name}: the graph language has no value for parameter `{name}`")


def _tensor(function: Function, index: int, value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.pointer
    # The first tensor is the one that every op reads; NULL there would end the process.
    absent = value is None or (value == 0 and function.names[index] in _ABSENT)
    if absent and index > 0 and isinstance(value, int | None):
        return None
    raise _wrong(function, function.names[index], "a tensor", value)


def _integer(library: Library, function: Function, index: int, value: Any) -> int:
    name, kind = function.names[index], function.types[index]
    if isinstance(value, str):
        if value in library.type_ids:
            return library.type_ids[value]
        try:
            return word(library, value)
        except KeyError:
            pass
        if name == "type":
            return type_id(library, value)
    if not isinstance(value, int):
        raise _wrong(function, name, "an integer", value)
    bits = 8 * ctypes.sizeof(kind)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind in _SIGNED else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise _wrong(function, name, f"an integer from {low} to {high}", value)
    return int(value)


def _array(function: Function, index: int, value: Any) -> Any:
    name, kind = function.names[index], function.types[index]
    if value is None:
        return None
    numbers = isinstance(value, tuple) and all(isinstance(item, int) for item in value)
    if not numbers or len(value) > _ARRAY_ROOM:
        raise _wrong(function, name, "a list of integers", value)
    return (kind._type_ * _ARRAY_ROOM)(*value)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors that an argument holds: itself, or those of a list."""
    return [item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Tensor)]


def _wrong(function: Function, name: str, wanted: str, value: Any) -> InvalidCase:
    given = f"a tensor ({value})" if isinstance(value, Tensor) else repr(value)
    return InvalidCase(f"{function.name}: `{name}` must be {wanted}, got {given}")
