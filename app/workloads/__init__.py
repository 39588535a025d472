"""Workloads: what resources are allocated for."""
