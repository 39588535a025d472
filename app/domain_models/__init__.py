"""Domain models: fitted versions of a workload's response to its resources."""
