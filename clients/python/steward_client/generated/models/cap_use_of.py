from enum import StrEnum


class CapUseOf(StrEnum):
    COST = "cost"
    SECONDS = "seconds"

    def __str__(self) -> str:
        return str(self.value)
