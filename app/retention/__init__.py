"""Retention: how long data is kept, what is needed by active objects, and deletion by age."""
