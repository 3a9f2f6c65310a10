"""YAML case files to cases."""

from gradcheck.cases.select import Selection, load_families, select

__all__ = ["Selection", "load_families", "select"]
