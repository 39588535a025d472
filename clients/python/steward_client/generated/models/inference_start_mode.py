from enum import StrEnum


class InferenceStartMode(StrEnum):
    ADVISE = "advise"
    CONTROL = "control"

    def __str__(self) -> str:
        return str(self.value)
