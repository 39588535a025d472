"""``steward demo cluster``: four trainings that share a CPU."""
