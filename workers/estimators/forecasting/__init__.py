"""Forecasts of arrivals: families, their back-test, and which of them answers."""
