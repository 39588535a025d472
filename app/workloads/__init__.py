"""Workloads: what is allocated for."""
