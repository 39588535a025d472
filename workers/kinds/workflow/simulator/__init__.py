"""Event-driven simulators of batch logs and workflows, compiled."""
