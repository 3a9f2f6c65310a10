"""Which elements may move together, on functions whose dependences are known."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcheck.numerics.differences import Derivative, differentiate, typical_step
from gradcheck.numerics.directions import confirm
from gradcheck.numerics.gradient_metrics import compare
from gradcheck.numerics.projection import Output
from gradcheck.numerics.structure import Moves, Structure, dense, probe, structured
from tests.unit.test_numerics import evaluator

F32 = NDArray[np.float32]
SHAPE = (3, 5, 6)
RNG = np.random.default_rng(4)
X = RNG.uniform(-1, 1, SHAPE).astype(np.float32)
W = RNG.uniform(-1, 1, (4, 6)).astype(np.float32)


def softmax(x: F32) -> F32:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def pairs(x: F32) -> F32:
    return np.concatenate([x[..., :3] * x[..., 3:], x[..., 3:]], axis=-1)


FUNCTIONS: dict[str, tuple[Callable[[F32], F32], set[int]]] = {
    "elementwise": (np.exp, {0, 1, 2}),
    "transposed": (lambda x: np.sin(x.T), {0, 1, 2}),
    "soft_max": (softmax, {0, 1}),
    "mul_mat": (lambda x: x @ W.T, {0, 1}),
    "sum over rows": (lambda x: x.sum(axis=1), {0, 2}),
    "sum": (lambda x: x.sum(), set()),
    "cumsum": (lambda x: np.cumsum(x, axis=0), {1, 2}),
    "repeat": (lambda x: np.tile(x, (2, 1, 3)), {0, 1, 2}),
    "gather": (lambda x: x[[2, 0, 2]], {0, 1, 2}),
    "pairs of a row": (pairs, {0, 1}),
    "relu": (lambda x: np.maximum(x, 0), {0, 1, 2}),
    "a part": (lambda x: x[1:, :2], {0, 1, 2}),
}


def vector(f: Callable[[F32], F32]) -> Callable[[F32], F32]:
    return lambda x: np.asarray(f(x.reshape(SHAPE)), dtype=np.float32).ravel()


def found(name: str) -> Structure:
    f = vector(FUNCTIONS[name][0])
    return probe(evaluator(f, X.ravel()), X.ravel(), SHAPE, 0.3, 7, RNG)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_separable_axes_are_found(name: str) -> None:
    structure = found(name)
    assert set(structure.owners) == FUNCTIONS[name][1]
    assert structure.probes <= 1 + 2 * 2 * (2 + 3 + 3)


def numeric(name: str, moves: Moves) -> tuple[Derivative, Output]:
    f = vector(FUNCTIONS[name][0])
    x = X.ravel()
    y = f(x).astype(np.float64)
    output = Output.of(y, np.random.default_rng(5).uniform(0.5, 1.5, y.shape))
    step = typical_step(x, None)
    return differentiate(evaluator(f, x), x, moves, output, step=step, per_call=5), output


@pytest.mark.parametrize("name", FUNCTIONS)
def test_moving_together_gives_what_single_moves_give(name: str) -> None:
    moves = structured(found(name), 1000, RNG)
    together, output = numeric(name, moves)
    alone, _ = numeric(name, dense(SHAPE, 1000, RNG))
    elements = moves.elements.ravel()
    assert sorted(elements) == list(range(X.size))
    bound = together.uncertainty[0] + alone.uncertainty[0, elements] + 1e-6
    smooth = ~(compare(together.value[0], together.of(0)).kink | compare(alone.value[0], alone.of(0)).kink[elements])
    assert smooth.mean() > 0.9
    assert (np.abs(together.value[0] - alone.value[0, elements]) <= bound)[smooth].all()
    f = vector(FUNCTIONS[name][0])
    step = typical_step(X.ravel(), None)
    if name != "relu":
        assert confirm(evaluator(f, X.ravel()), X.ravel(), moves, together, output, step=step, rng=RNG)[0]


@pytest.mark.parametrize("name", ["soft_max", "mul_mat", "cumsum", "pairs of a row"])
def test_a_wrong_structure_is_not_confirmed(name: str) -> None:
    """Elements that share outputs are moved together all the same, as if every output were its neighbour's."""
    size = vector(FUNCTIONS[name][0])(X.ravel()).size
    owner = np.arange(size) % X.size
    moves = Moves(np.arange(X.size, dtype=np.int64)[None, :], owner)
    derivative, output = numeric(name, moves)
    f = vector(FUNCTIONS[name][0])
    step = typical_step(X.ravel(), None)
    confirmed = [
        confirm(evaluator(f, X.ravel()), X.ravel(), moves, derivative, output, step=step, rng=RNG)[0] for _ in range(5)
    ]
    assert not all(confirmed)


def test_a_limit_samples_whole_moves() -> None:
    moves = structured(found("soft_max"), 2, RNG)
    assert moves.elements.shape == (2, 15)
    assert moves.elements[0, 0] == 0
    assert moves.elements[-1, -1] == X.size - 1


def test_an_output_whose_moves_cancel_by_chance_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Differences on a coarse grid: of some rows both elements move by so nearly the same that theirs does not change.
    shape = (400, 2)
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)

    def f(flat: F32) -> F32:
        rows = flat.reshape(shape)
        return np.asarray(np.round((rows[:, 0] - rows[:, 1]) * 64) / 64, dtype=np.float32)

    def unowned() -> int:
        structure = probe(evaluator(f, x.ravel()), x.ravel(), shape, 0.3, 7, np.random.default_rng(0))
        owner = structure.owners[0]
        owned = owner >= 0
        assert set(structure.owners) == {0}
        assert np.array_equal(owner[owned], np.flatnonzero(owned))
        return int((~owned).sum())

    three_passes = unowned()
    monkeypatch.setattr("gradcheck.numerics.structure._PASSES", 1)
    assert unowned() >= 5 * max(1, three_passes)
