"""The ready-made part of a kind's learning half, for decisions that are numbered actions in a simulator."""

from workers.kinds.simulated.kind import SimulatedKind

__all__ = ["SimulatedKind"]
