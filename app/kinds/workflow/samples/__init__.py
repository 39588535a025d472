"""Samples of kind `workflow`: an execution is a trace of tasks."""
