"""Exogenous series: what comes from outside of a workload, as it was forecast: arrivals, prices."""
