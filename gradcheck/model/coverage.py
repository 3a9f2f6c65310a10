"""How well the cases cover an op of ggml."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpCoverage:
    """What there is for one op.

    eval, grad: the cases of these modes whose op under test it is; for grad, those that differentiate an input
    tried, built: graphs of such cases for which a backward was asked, and those that ggml has made one for
    families: the families of cases in whose graphs, forward and backward, it was found, whatever is under test there
    missing: what is missing, "" where nothing is
    """

    op: str
    eval: int
    grad: int
    tried: int
    built: int
    families: int
    missing: str
