"""The learning half of kind ``inference``: estimation, simulator, training, evaluation."""

from workers.kinds.inference.kind import KIND

__all__ = ["KIND"]
