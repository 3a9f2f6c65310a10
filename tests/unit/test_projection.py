"""Changes of outputs, given to cotangents and owners, against sums that are written out."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics import projection
from gradcheck.numerics.projection import Output, Projection

RNG = np.random.default_rng(7)
OUTPUTS, TOGETHER, ROWS = 60, 12, 3

OWNERS: dict[str, NDArray[np.int64] | None] = {
    "one": None,
    "runs": np.repeat(RNG.permutation(TOGETHER), OUTPUTS // TOGETHER),
    "interleaved": np.tile(np.arange(TOGETHER), OUTPUTS // TOGETHER),
    "uneven": RNG.integers(0, TOGETHER, OUTPUTS),
    "some of nobody": RNG.integers(0, TOGETHER + 1, OUTPUTS),
    "all of one": np.full(OUTPUTS, 4),
}


def written_out(
    y: NDArray[np.float32], output: Output, owner: NDArray[np.int64] | None, factors: NDArray[np.float64]
) -> NDArray[np.float64]:
    together = 1 if owner is None else TOGETHER
    result = np.zeros((len(y), len(factors), together))
    for row, k, at in np.ndindex(len(y), len(factors), OUTPUTS):
        of = 0 if owner is None else int(owner[at])
        if of < together and y[row, at] != output.base[at]:
            result[row, k, of] += factors[k, at] * (float(y[row, at]) - output.base[at])
    return result


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("name", OWNERS)
def test_changes(name: str, share: float, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if few:
        monkeypatch.setattr(projection, "_SMALL", 0)
    owner = OWNERS[name]
    base = RNG.normal(size=OUTPUTS).astype(np.float32)
    output = Output.of(base.astype(np.float64), RNG.normal(size=(2, OUTPUTS)))
    moved = RNG.uniform(size=(ROWS, OUTPUTS)) < share
    y = np.where(moved, base + RNG.normal(size=(ROWS, OUTPUTS)), base).astype(np.float32)
    found = Projection(output, owner, 1 if owner is None else TOGETHER)
    assert np.allclose(
        found.changes(y, found.changed(y)), written_out(y, output, owner, output.cotangents), rtol=1e-12, atol=1e-12
    )
    changed = y != base
    ones = base + changed
    assert np.allclose(
        found.rounding(changed),
        written_out(ones, output, owner, output.weights),
        rtol=1e-6,
    )


def test_equal_infinities_did_not_change() -> None:
    base = np.array([1.0, -np.inf, 2.0])
    output = Output.of(base, np.ones((1, 3)))
    y = np.array([[1.5, -np.inf, 2.0]], dtype=np.float32)
    whole = Projection(output, None, 1)
    assert whole.changes(y, whole.changed(y)).tolist() == [[[0.5]]]
    owned = Projection(output, np.array([0, 1, 2]), 3)
    assert owned.changes(y, owned.changed(y)).tolist() == [[[0.5, 0.0, 0.0]]]


def test_an_infinity_that_appears_is_not_lost() -> None:
    output = Output.of(np.array([1.0, 2.0]), np.ones((1, 2)))
    y = np.array([[np.inf, 2.0]], dtype=np.float32)
    whole = Projection(output, None, 1)
    assert whole.changes(y, whole.changed(y)).tolist() == [[[np.inf]]]
