"""Scheduling: priority rules, ranks, backfilling, placement and rental of nodes."""
