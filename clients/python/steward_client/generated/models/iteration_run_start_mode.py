from enum import StrEnum


class IterationRunStartMode(StrEnum):
    ADVISE = "advise"
    CONTROL = "control"

    def __str__(self) -> str:
        return str(self.value)
