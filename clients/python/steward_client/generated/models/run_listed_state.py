from enum import StrEnum


class RunListedState(StrEnum):
    FAILED = "failed"
    FINISHED = "finished"
    RUNNING = "running"

    def __str__(self) -> str:
        return str(self.value)
