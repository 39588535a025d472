"""Domain models of kind ``inference``: seconds of batches, and arrivals of requests."""
