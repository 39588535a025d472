"""Kind ``cluster``: what learns for training jobs that share the GPUs of some nodes."""

from workers.kinds.cluster.kind import KIND

__all__ = ["KIND"]
