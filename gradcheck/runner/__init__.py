"""The parent's side of a run: child processes, and a Result for every way in which one can end."""

from gradcheck.runner.options import PoolOptions, default_memory
from gradcheck.runner.pool import Pool
from gradcheck.runner.verdict import judge

__all__ = ["Pool", "PoolOptions", "default_memory", "judge"]
