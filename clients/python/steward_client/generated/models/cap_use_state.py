from enum import StrEnum


class CapUseState(StrEnum):
    NEAR = "near"
    REACHED = "reached"
    WITHIN = "within"

    def __str__(self) -> str:
        return str(self.value)
