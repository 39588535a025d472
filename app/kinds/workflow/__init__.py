"""Batch jobs and workflow DAGs on priced nodes: which ready tasks start now, and where."""
