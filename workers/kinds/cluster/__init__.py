"""The learning half of kind ``cluster`` (training jobs that share the GPUs of some nodes)."""

from workers.kinds.cluster.kind import KIND

__all__ = ["KIND"]
