"""Records to plain dicts and back: what crosses the pipe to a worker and what `--format json` writes.

A number that JSON cannot hold is written as the string "nan", "inf" or "-inf".
"""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")


def encode(value: Any) -> Any:
    """A record, tuple, mapping, enum or scalar as JSON-ready data."""
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is tuple or kind is list:
        return [encode(item) for item in value]
    if dataclasses.is_dataclass(kind):
        return {name: encode(getattr(value, name)) for name in _field_names(kind)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    raise TypeError(f"{kind.__name__} is not a record, a container of records or a scalar")


def decode(cls: type[T], data: Any) -> T:
    """The record of type `cls` that `encode` made `data` from.

    Raises ValueError, naming the field, where data does not fit; fields with a default may be absent.
    """
    decoder: Callable[[Any], Any] = _decoder(typing.cast(Any, cls))
    return typing.cast(T, decoder(data))


@functools.cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@functools.cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin = typing.get_origin(hint)
    if hint is float:
        return float
    if dataclasses.is_dataclass(hint):
        return _record_decoder(typing.cast(type, hint))
    if origin is tuple:
        return _tuple_decoder(typing.get_args(hint))
    if origin in (types.UnionType, typing.Union):
        return _union_decoder(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if hint in (str, int, bool, type(None)):
        return _scalar_decoder(hint)
    raise TypeError(f"no decoder for {hint!r}")


def _scalar_decoder(hint: type) -> Callable[[Any], Any]:
    def scalar(data: Any) -> Any:
        if type(data) is not hint:
            raise ValueError(f"expected {hint.__name__}, found {data!r}")
        return data

    return scalar


def _record_decoder(cls: type) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(cls)
    decoders = {name: _decoder(hints[name]) for name in _field_names(cls)}

    def record(data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError(f"expected a {cls.__name__}, found {data!r}")
        arguments = {}
        for name, item in data.items():
            if name not in decoders:
                raise ValueError(f"{cls.__name__} has no field {name!r}")
            try:
                arguments[name] = decoders[name](item)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{cls.__name__}.{name}: {error}") from error
        try:
            return cls(**arguments)
        except TypeError as error:
            raise ValueError(f"{cls.__name__}: {error}") from error

    return record


def _tuple_decoder(args: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(args) == 2 and args[1] is Ellipsis:
        # A recursive alias (a Value inside a Value) arrives as a forward reference.
        item = _freeze if isinstance(args[0], typing.ForwardRef) else _decoder(args[0])
        return lambda data: tuple(item(entry) for entry in data)
    items = [_decoder(arg) for arg in args]

    def fixed(data: Any) -> Any:
        if len(data) != len(items):
            raise ValueError(f"expected {len(items)} items, found {len(data)}")
        return tuple(item(entry) for item, entry in zip(items, data, strict=True))

    return fixed


def _union_decoder(args: tuple[Any, ...]) -> Callable[[Any], Any]:
    records = [arg for arg in args if dataclasses.is_dataclass(arg)]
    if records:
        decoder: Callable[[Any], Any] = _decoder(typing.cast(Any, records[0]))
        return lambda data: None if data is None else decoder(data)
    if float in args and str not in args:
        return lambda data: None if data is None else float(data)
    return _freeze


def _freeze(data: Any) -> Any:
    return tuple(_freeze(item) for item in data) if isinstance(data, list) else data
