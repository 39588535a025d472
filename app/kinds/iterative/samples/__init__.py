"""Samples of kind `iterative`: an execution is a table of iterations."""
