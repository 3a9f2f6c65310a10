"""What many seeds tell: failure rates with exact intervals, margins, and limits for a rate; pure Python."""

from gradcheck.flakiness.rates import assess

__all__ = ["assess"]
