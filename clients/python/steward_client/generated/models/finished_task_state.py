from enum import StrEnum


class FinishedTaskState(StrEnum):
    FAILED = "failed"
    FINISHED = "finished"

    def __str__(self) -> str:
        return str(self.value)
