from enum import StrEnum


class EndedState(StrEnum):
    FAILED = "failed"
    FINISHED = "finished"

    def __str__(self) -> str:
        return str(self.value)
