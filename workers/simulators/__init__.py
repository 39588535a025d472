"""Vectorised environments, one per kind."""
