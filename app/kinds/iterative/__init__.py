"""One workload, and its allocation over iterations."""
