from enum import StrEnum


class MonthlySavingsMode(StrEnum):
    ADVISE = "advise"
    CONTROL = "control"

    def __str__(self) -> str:
        return str(self.value)
