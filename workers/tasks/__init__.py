"""Tasks: an id comes in, one call does the work, its result goes out."""
