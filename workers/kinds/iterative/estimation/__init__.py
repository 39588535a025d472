"""Domain models of kind `iterative`: how metrics respond to allocations."""
