"""Four trainings that share a CPU: ``steward demo cluster``."""
