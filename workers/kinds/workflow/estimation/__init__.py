"""Domain models of kind `workflow`: how long tasks run."""
