"""Domain models of kind `inference`: how long batches take, and how requests arrive."""
