"""A cluster between two reports: which jobs are there, on which nodes, and how reports change that."""
