"""A live queue: its state, its reports, and how they advance it."""
