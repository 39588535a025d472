"""Scheduling: rules, ranks, mechanisms, placement and renting."""
