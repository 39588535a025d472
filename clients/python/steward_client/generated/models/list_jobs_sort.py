from enum import StrEnum


class ListJobsSort(StrEnum):
    STARTED = "started"
    VALUE_0 = "-started"

    def __str__(self) -> str:
        return str(self.value)
