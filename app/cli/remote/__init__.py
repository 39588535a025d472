"""The service as commands call it."""
