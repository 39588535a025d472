from enum import StrEnum


class ListRunsSort(StrEnum):
    COST = "cost"
    DURATION = "duration"
    OUTCOME = "outcome"
    STARTED = "started"
    VALUE_0 = "-started"
    VALUE_2 = "-duration"
    VALUE_4 = "-cost"
    VALUE_6 = "-outcome"

    def __str__(self) -> str:
        return str(self.value)
