"""Evaluations: agents of a workload, judged by the evaluation protocol."""
