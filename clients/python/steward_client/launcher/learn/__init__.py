"""Preparation of a governed workload from a command: registration, profiling, fit and training."""
