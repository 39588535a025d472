from enum import StrEnum


class MetricGoal(StrEnum):
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    TRACK = "track"

    def __str__(self) -> str:
        return str(self.value)
