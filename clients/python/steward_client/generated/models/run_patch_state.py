from enum import StrEnum


class RunPatchState(StrEnum):
    FAILED = "failed"
    FINISHED = "finished"

    def __str__(self) -> str:
        return str(self.value)
