"""The closed expression language of case files: parsed with `ast`, evaluated over a whitelist."""

from gradcheck.language.evaluate import evaluate, run_graph
from gradcheck.language.parse import Expression, Graph, parse_expression, parse_graph

__all__ = ["Expression", "Graph", "evaluate", "parse_expression", "parse_graph", "run_graph"]
