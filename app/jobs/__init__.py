"""Jobs: work for the workers, its lease, progress and events."""
