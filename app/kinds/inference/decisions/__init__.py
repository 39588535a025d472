"""Decisions of kind ``inference``: events in, what to start out."""
