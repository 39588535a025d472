"""Decisions on data that nobody who decides has seen; ``python -m benchmarks.held_out`` plays them."""
