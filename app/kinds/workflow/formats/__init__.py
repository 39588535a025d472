"""Readers and writers of trace formats: Standard Workload Format and WfFormat."""
