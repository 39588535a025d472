from enum import StrEnum


class ClusterDecisionSource(StrEnum):
    AGENT = "agent"
    FALLBACK = "fallback"
    GUARD = "guard"
    HEURISTIC = "heuristic"

    def __str__(self) -> str:
        return str(self.value)
