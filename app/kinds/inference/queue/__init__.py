"""A run between two reports: who waits, what servers do, and how reports change it."""
