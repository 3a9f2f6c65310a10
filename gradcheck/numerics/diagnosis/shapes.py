"""What the shape of a gradient says where it is not that of its param."""

import math


def of_shape(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    """A guess in words that follow "the gradient is", "" for none; shapes in NumPy's order."""
    if len(got) != len(want):
        return ""
    last = len(want) - 1
    if sorted(got) == sorted(want):
        moved = [f"i{last - axis}" for axis in reversed(range(len(want))) if got[axis] != want[axis]]
        return f"transposed, it seems: the lengths of {' and '.join(moved)} have changed places"
    if math.prod(got) == math.prod(want):
        return "one of another shape with as many elements: a reshape may be missing"
    grown = [axis for axis in reversed(range(len(want))) if got[axis] != want[axis]]
    names = " and ".join(f"i{last - axis}" for axis in grown)
    if all(want[axis] and got[axis] and got[axis] % want[axis] == 0 for axis in grown):
        return f"larger along {names}: a sum over the repetitions may be missing"
    if all(got[axis] and want[axis] % got[axis] == 0 for axis in grown):
        return f"smaller along {names}: a repetition may be missing, or a sum too many there"
    return ""
