"""Evaluation of policies against heuristics and the exact optimum."""
