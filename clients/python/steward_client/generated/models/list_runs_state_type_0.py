from enum import StrEnum


class ListRunsStateType0(StrEnum):
    FAILED = "failed"
    FINISHED = "finished"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
