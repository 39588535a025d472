"""Evaluations of a workload's agents by the evaluation protocol."""
