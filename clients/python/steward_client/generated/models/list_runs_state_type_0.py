from enum import StrEnum


class ListRunsStateType0(StrEnum):
    CANCELLED = "cancelled"
    FAILED = "failed"
    FINISHED = "finished"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
