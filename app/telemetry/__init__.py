"""What the service tells of its work: log lines, ids that join them across processes, spans."""
