"""Samples of kind ``cluster``: an execution is measured steps, learning curves, jobs that came, or some of each."""
