"""Corner cases that are made, not written: functions from a case to others that test the same op harder."""

from gradcheck.variants.choose import ALL, DEFAULT, NONE, vary
from gradcheck.variants.table import DEFAULT_NAMES, VARIANTS, Variant

__all__ = ["ALL", "DEFAULT", "DEFAULT_NAMES", "NONE", "VARIANTS", "Variant", "vary"]
