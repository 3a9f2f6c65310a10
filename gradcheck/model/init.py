"""The ways in which an input can get its values: each kind with its arguments and their defaults.

`gradcheck.numerics.sampling` gives the kinds their meaning.
"""

from gradcheck.model.case import Value

#: kind -> argument -> default; REQUIRED where there is none.
REQUIRED = "<required>"

INIT_KINDS: dict[str, dict[str, Value]] = {
    # uniform on [low, high]; grid: rounded to multiples of it; gap: abs(x) is at least this
    "uniform": {"low": -1.0, "high": 1.0, "grid": None, "gap": None},
    "normal": {"mean": 0.0, "std": 1.0},
    # uniform on [low, high], away from zero: for log, sqrt and divisors
    "positive": {"low": 0.5, "high": 1.5},
    # a shuffled, evenly spaced ladder from low to high: no two elements are equal, so no maximum is a tie
    "distinct": {"low": -1.0, "high": 1.0},
    # uniform integers in [low, high)
    "integers": {"low": 0, "high": REQUIRED},
    # each row holds distinct integers out of [0, high); high None: a permutation of the row
    "permutation": {"high": None},
    # the numbers start, start + step, ... along the whole tensor
    "arange": {"start": 0, "step": 1},
    # attention mask: 0 where key <= query + past, -inf elsewhere
    "causal": {"past": 0},
    # attention mask: random finite values with a share of square blocks of -inf
    "block_mask": {"block": 16, "share": 0.3},
    # lower triangular with a diagonal of magnitude [diagonal, 2 diagonal]
    "lower_triangular": {"diagonal": 1.0},
    # each row is a probability distribution
    "probabilities": {},
    # each row has a single 1, elsewhere 0
    "one_hot": {},
    # the Hadamard matrix of Sylvester, scaled to be orthonormal: (-1)^popcount(row & column) / sqrt(ne[0])
    "hadamard": {},
    "constant": {"value": REQUIRED},
    # the given numbers, repeated to fill the tensor
    "values": {"list": REQUIRED},
}
