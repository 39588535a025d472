"""Samples: executions of a workload, uploaded or taken over from its runs."""
