"""Drift: detection of measurements that leave the domain model's predictions, and the response to it."""
