"""Jobs: queued work of the workers, with leases, progress and events."""
