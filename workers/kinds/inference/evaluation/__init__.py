"""Evaluations of kind ``inference``: the problem, recordings, charts, and the exact optimum of small queues."""
