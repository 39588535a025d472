"""Read-only pages over the services."""
