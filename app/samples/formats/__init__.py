"""How executions are written: CSV, newline-delimited JSON, and JSON."""
