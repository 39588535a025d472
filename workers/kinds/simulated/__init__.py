"""A base class for the learning half of kinds whose decisions are numbered actions in a simulator."""

from workers.kinds.simulated.kind import SimulatedKind

__all__ = ["SimulatedKind"]
