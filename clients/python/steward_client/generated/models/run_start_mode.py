from enum import StrEnum


class RunStartMode(StrEnum):
    ADVISE = "advise"
    CONTROL = "control"

    def __str__(self) -> str:
        return str(self.value)
