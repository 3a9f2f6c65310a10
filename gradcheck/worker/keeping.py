"""What a job with many seeds opens is built once: for the next seed it is loaded with other values."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from gradcheck.model.case import Case
from gradcheck.model.graph import Description
from gradcheck.modes.bench import AllocatedProgram, Batch, Device, Program, ScheduledProgram, TimedProgram, Values

T = TypeVar("T")

#: A device by its name and its number of CPU threads.
OpenDevice = Callable[[str, int], Device]


class Keeper:
    """Devices that keep what is opened on them, until `forget`."""

    def __init__(self, open_device: OpenDevice) -> None:
        self._open = open_device
        self._devices: dict[tuple[str, int], KeepingDevice] = {}

    def device(self, name: str, threads: int) -> "KeepingDevice":
        """The device, the same one for the same name and threads."""
        if (name, threads) not in self._devices:
            self._devices[name, threads] = KeepingDevice(self._open(name, threads))
        return self._devices[name, threads]

    def forget(self) -> None:
        """Free everything that is kept."""
        for device in self._devices.values():
            device.forget()


class _Lent:
    """Something of a KeepingDevice: `free` hands it back there."""

    def __init__(self, thing: Any, hand_back: Callable[[Any], None]) -> None:
        self._thing, self._hand_back = thing, hand_back

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)

    def free(self) -> None:
        """Hand it back; harmless when repeated."""
        thing, self._thing = self._thing, None
        if thing is not None:
            self._hand_back(thing)


class KeepingDevice:
    """A device that keeps what is freed, and opens it again when it is asked for the same, until `forget`.

    Programs for timing, which a mode opens once for all seeds, are not kept.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kept: dict[tuple[Any, ...], list[Any]] = {}

    @property
    def name(self) -> str:
        """The name of the device."""
        return self._device.name

    def open(self, case: Case, *, backward: bool = False) -> Program:
        """As the device does, or what it gave before; the same holds for all that follow."""
        return self._lend(("open", case, backward), lambda: self._device.open(case, backward=backward))

    def open_scheduled(self, case: Case, *, backward: bool = False) -> ScheduledProgram:
        """Through ggml's scheduler."""
        key = ("open_scheduled", case, backward)
        return self._lend(key, lambda: self._device.open_scheduled(case, backward=backward))

    def open_allocated(self, case: Case, alloc: str, *, accumulate: bool = False) -> AllocatedProgram:
        """Both directions, with memory given out in a chosen way."""
        key = ("open_allocated", case, alloc, accumulate)
        return self._lend(key, lambda: self._device.open_allocated(case, alloc, accumulate=accumulate))

    def batch(self, case: Case, values: Values, copies: int) -> Batch:
        """Copies of the forward graph; the values are loaded into those that there are."""
        key = ("batch", case, copies)
        known = bool(self._kept.get(key))
        batch = self._lend(key, lambda: self._device.batch(case, values, copies))
        if known:
            batch.load(values)
        return batch

    def open_timed(self, case: Case, *, backward: bool = False) -> TimedProgram:
        """For timing."""
        return self._device.open_timed(case, backward=backward)

    def check(self, case: Case, *, backward: bool = False) -> None:
        """Whether the device takes the graph."""
        self._device.check(case, backward=backward)

    def describe(self, case: Case, *, backward: bool = False) -> Description:
        """The graph as data."""
        return self._device.describe(case, backward=backward)

    def forget(self) -> None:
        """Free everything that is kept."""
        while self._kept:
            for thing in self._kept.popitem()[1]:
                thing.free()

    def _lend(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        kept = self._kept.setdefault(key, [])
        thing = kept.pop() if kept else make()
        return cast(T, _Lent(thing, kept.append))
