"""Forecasts of arrivals in the service, in NumPy, by models that ``workers.estimators.forecasting`` fits."""
