"""The learning half of kind ``workflow``: estimation, simulators, training, evaluation."""

from workers.kinds.workflow.kind import KIND

__all__ = ["KIND"]
