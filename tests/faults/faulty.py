"""A real device whose programs are wrong in one chosen way: the forward pass is ggml's, the fault is planted after."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcheck.model.case import Case
from gradcheck.modes.bench import Array, Device, Program

Gradients = dict[str, Array | None]
GradientFault = Callable[[Gradients], Gradients]
OutputFault = Callable[[Array], Array]


class FaultyProgram:
    """A program with one fault; everything else is the real program's."""

    def __init__(self, program: Program, gradient: GradientFault | None, output: OutputFault | None) -> None:
        self._program = program
        self._gradient = gradient
        self._output = output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def backward(self, cotangent: Array) -> Gradients:
        gradients: Gradients = self._program.backward(cotangent)
        return self._gradient(gradients) if self._gradient else gradients

    def forward(self) -> Array:
        y: Array = self._program.forward()
        return self._output(y.copy()) if self._output else y


@dataclass(frozen=True)
class FaultyDevice:
    """A device that opens faulty programs; its batches are right, as the numeric side must be."""

    device: Device
    gradient: GradientFault | None = None
    output: OutputFault | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def open(self, case: Case, *, backward: bool = False) -> FaultyProgram:
        return FaultyProgram(self.device.open(case, backward=backward), self.gradient, self.output)


def scaled(factor: float) -> GradientFault:
    return lambda gradients: {name: None if g is None else g * factor for name, g in gradients.items()}


def one_element(at: int, change: Callable[[float], float]) -> GradientFault:
    """One element of the first param is changed."""

    def fault(gradients: Gradients) -> Gradients:
        name, g = next(iter(gradients.items()))
        assert g is not None
        wrong = g.copy()
        wrong.flat[at] = change(float(wrong.flat[at]))
        return {**gradients, name: wrong}

    return fault


def changed(name: str, change: Callable[[Array], Array | None]) -> GradientFault:
    """The gradient of one param is changed as a whole."""

    def fault(gradients: Gradients) -> Gradients:
        g = gradients[name]
        assert g is not None
        return {**gradients, name: change(g)}

    return fault


def swapped(first: str, second: str) -> GradientFault:
    return lambda gradients: {**gradients, first: gradients[second], second: gradients[first]}


def without_last_row(g: Array) -> Array:
    wrong = g.copy()
    wrong[..., -1, :] = 0
    return wrong
