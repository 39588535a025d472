"""Exogenous series: forecasts of quantities outside a workload, such as arrivals or prices."""
