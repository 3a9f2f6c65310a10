"""YAML case files to cases."""

from gradcheck.cases.select import Selection, cases_by_mode, load_families, select

__all__ = ["Selection", "cases_by_mode", "load_families", "select"]
