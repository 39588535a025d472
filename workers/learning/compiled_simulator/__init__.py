"""Simulators as programs that a compiler can trace."""
