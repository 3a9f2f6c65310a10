"""Every variant by its name, with what it does in a line."""

from collections.abc import Callable
from dataclasses import dataclass

from gradcheck.model.case import Case
from gradcheck.variants.data import ascending, constant, infinite, negative, special, spike
from gradcheck.variants.gradient import accumulator, second_consumer, strided_cotangent
from gradcheck.variants.layout import padded, permuted, sliced, transposed
from gradcheck.variants.operands import alone, broadcast
from gradcheck.variants.sizes import Resize, tails


@dataclass(frozen=True, slots=True)
class Variant:
    """A function from a case to others. Their `Case.variant` is the name, or the name with a detail: `tails:33`."""

    doc: str
    make: Callable[[Case, Resize], tuple[Case, ...]]


def _plain(make: Callable[[Case], tuple[Case, ...]]) -> Callable[[Case, Resize], tuple[Case, ...]]:
    return lambda case, _resize: make(case)


VARIANTS: dict[str, Variant] = {
    "sliced": Variant("params are views into larger tensors, with an offset along every axis", _plain(sliced)),
    "padded": Variant("rows of params are longer in memory", _plain(padded)),
    "permuted": Variant("params are stored with two outer axes swapped", _plain(permuted)),
    "transposed": Variant("params are stored with their rows as columns", _plain(transposed)),
    "broadcast": Variant("the second of two params of one shape has size 1 along an axis", _plain(broadcast)),
    "second_consumer": Variant("params are read by a second op too: gradients accumulate", _plain(second_consumer)),
    "alone": Variant("one param is differentiated, and the others are not", _plain(alone)),
    "strided_cotangent": Variant("the gradient of the output is transposed or permuted", _plain(strided_cotangent)),
    "accumulator": Variant("gradients are added to those of an earlier pass", _plain(accumulator)),
    "tails": Variant("rows of 1, 7, 31, 33, 65 and 129 elements", tails),
    "special": Variant("some elements are 0, -0 or denormal", _plain(special)),
    "infinite": Variant("one element is inf and one -inf, where the op has a value for them", _plain(infinite)),
    "negative": Variant("all elements are negative", _plain(negative)),
    "spike": Variant("one element is much larger than the others", _plain(spike)),
    "constant": Variant("all elements are equal", _plain(constant)),
    "sorted": Variant("elements are in ascending order", _plain(ascending)),
}

#: Those that find most for their time.
DEFAULT_NAMES = ("sliced", "second_consumer", "alone", "strided_cotangent")
