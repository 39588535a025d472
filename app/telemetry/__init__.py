"""Telemetry: log lines, trace ids across processes, and spans."""
