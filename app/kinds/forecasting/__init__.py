"""Forecasts of arrivals as a service gives them, in NumPy: what ``workers.estimators.forecasting`` has fitted."""
