"""From a tensor of the target and of the reference to what is wrong with it, with the evidence."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gradcheck.model.result import Evidence
from gradcheck.modes.bench import Array
from gradcheck.numerics.elements import unravel_ne
from gradcheck.numerics.forward_metrics import Difference, difference
from gradcheck.numerics.gradient_metrics import asymmetry

_SHOWN = 5
#: The bound of one element in units of the root of the bound of the mean square: a tail of ten deviations.
_ELEMENT_SHARE = 10.0


@dataclass(frozen=True)
class Compared:
    """One tensor of both sides, and what they differ by; None where not even their shapes agree."""

    name: str
    got: Array
    want: Array
    difference: Difference | None

    @property
    def nmse(self) -> float:
        """The normalised mean squared error; NaN without a number."""
        return self.difference.nmse if self.difference else math.nan

    @property
    def worst(self) -> float:
        """The largest error of an element."""
        return self.difference.worst if self.difference else math.inf

    def reasons(self, limits: Mapping[str, float]) -> list[str]:
        """What is wrong with this tensor."""
        found = self.difference
        if found is None:
            got, want = (list(reversed(side.shape)) for side in (self.got, self.want))
            return [f"{self.name} has the shape {got}, and {want} in the reference"]
        if found.one_sided:
            return [f"{found.one_sided} elements of {self.name} are NaN or infinite on one side only"]
        if found.nan:
            return [f"{found.nan} elements of {self.name} are NaN on both sides"]
        reasons = []
        if not found.nmse <= limits["nmse"]:
            reasons.append(f"nmse of {self.name} {found.nmse:.3g} > {limits['nmse']:.3g}")
        if not found.worst <= element_limit(limits):
            reasons.append(f"element of {self.name} {found.worst:.3g} > {element_limit(limits):.3g}")
        return reasons

    def evidence(self) -> list[Evidence]:
        """The worst elements, worst first."""
        places = list(self.difference.places) if self.difference else []
        got, want = self.got.reshape(-1)[places], self.want.reshape(-1)[places]
        return [
            Evidence(
                tensor=self.name,
                index=unravel_ne(place, self.got.shape),
                got=float(g),
                want=float(w),
                asymmetry=float(ratio),
                uncertainty=0.0,
            )
            for place, g, w, ratio in zip(places, got, want, asymmetry(got, want), strict=True)
        ]


def compare(name: str, got: Array, want: Array) -> Compared:
    """Measure a tensor of the target against that of the reference."""
    return Compared(name, got, want, difference(got, want, _SHOWN) if got.shape == want.shape else None)


def element_limit(limits: Mapping[str, float]) -> float:
    """The bound of one element: the declared one, or what follows from that of the mean square."""
    return limits["element"] or _ELEMENT_SHARE * math.sqrt(limits["nmse"])
