"""Decisions of kind `workflow`: queues in, placements out."""
