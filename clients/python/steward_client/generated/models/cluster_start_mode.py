from enum import StrEnum


class ClusterStartMode(StrEnum):
    ADVISE = "advise"
    CONTROL = "control"

    def __str__(self) -> str:
        return str(self.value)
