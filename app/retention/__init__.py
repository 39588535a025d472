"""What is kept for how long: what live things rest on, ages by workload, what is due, and its deletion."""
