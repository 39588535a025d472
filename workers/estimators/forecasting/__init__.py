"""Forecasts of arrival counts: model families, their back-test, and the choice among them."""
