"""Kind ``inference``: requests of several users, on model variants, in batches, on servers; its learning half."""

from workers.kinds.inference.kind import KIND

__all__ = ["KIND"]
