"""Trace formats: Standard Workload Format and WfFormat, read, checked and written."""
