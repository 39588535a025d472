"""Samples: executions of a workload, uploaded or made from its runs."""
