from enum import StrEnum


class RunPatchStateType0(StrEnum):
    CANCELLED = "cancelled"
    FAILED = "failed"
    FINISHED = "finished"

    def __str__(self) -> str:
        return str(self.value)
