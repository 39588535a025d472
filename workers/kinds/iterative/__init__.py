"""The learning half of kind ``iterative``: estimation, simulator, training, evaluation."""

from workers.kinds.iterative.kind import KIND

__all__ = ["KIND"]
