"""YAML case files to cases."""

from gradcheck.cases.known import with_known
from gradcheck.cases.resize import Resizer
from gradcheck.cases.select import Selection, cases_by_mode, load_families, select, variants_by_id

__all__ = ["Resizer", "Selection", "cases_by_mode", "load_families", "select", "variants_by_id", "with_known"]
