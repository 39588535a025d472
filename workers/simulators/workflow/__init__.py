"""Event-driven simulators of the workflow kind."""
