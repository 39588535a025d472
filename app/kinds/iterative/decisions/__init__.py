"""Decisions of kind `iterative`: reports in, next allocations out."""
