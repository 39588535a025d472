"""Caps on cost and duration that runs share, by workload and tenant."""
