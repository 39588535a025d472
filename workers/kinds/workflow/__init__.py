"""Learning for kind `workflow`."""
