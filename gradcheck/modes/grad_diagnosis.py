"""What the errors of a failed case look like, in words for its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradcheck.modes.bench import Array, Values
from gradcheck.numerics.diagnosis import Compared, Tensor, diagnose

if TYPE_CHECKING:
    from gradcheck.modes.grad_verdict import ParamGradient

#: The method whose elements are numbers of directions, which have no places.
_DIRECTIONAL = "directional"


@dataclass(frozen=True)
class AtHand:
    """What backprop may have returned in place of a gradient.

    values: the inputs by name; y: the output; cotangents: (cotangents, *shape of y)
    """

    values: Values
    y: Array
    cotangents: Array

    def tensors(self, cotangent: int) -> list[Tensor]:
        """All of them by the names that a reader knows."""
        inputs = [Tensor(f"the input {name}", x.astype(np.float64)) for name, x in self.values.items()]
        return [Tensor("the cotangent", self.cotangents[cotangent]), *inputs, Tensor("the output", self.y)]


def diagnose_case(
    params: "Sequence[ParamGradient]", limits: Mapping[str, float], at_hand: AtHand | None = None
) -> tuple[str, ...]:
    """The words for the first cotangent under which something is wrong; none where no single element is."""
    tolerance = _tolerance(params, limits)
    for cotangent in sorted({param.cotangent for param in params}):
        compared = [
            _compared(param, tolerance)
            for param in params
            if param.cotangent == cotangent and param.method != _DIRECTIONAL
        ]
        if words := diagnose(compared, at_hand.tensors(cotangent) if at_hand else ()):
            return words
    return ()


def _tolerance(params: "Sequence[ParamGradient]", limits: Mapping[str, float]) -> float:
    """Which elements are wrong: those above the limit of one, or where there is none those that moved a mean."""
    element = limits["element"]
    if any(bool(np.any(param.judged.excess > element)) for param in params):
        return element
    return min(element, limits["rel_l2"], limits["maa"])


def _compared(param: "ParamGradient", tolerance: float) -> Compared:
    judged = param.judged
    return Compared.of(
        param.name,
        param.shape,
        param.elements,
        (judged.backprop, judged.numeric, judged.uncertainty),
        ~judged.kink,
        tolerance=tolerance,
        gradient_shape=param.gradient_shape,
    )
