"""Learning for kind `iterative`."""
