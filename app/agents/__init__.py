"""Agents: trained versions of a workload's policy."""
