"""Commands that call a service."""
