from enum import StrEnum


class WorkflowSpecBackfilling(StrEnum):
    CONSERVATIVE = "conservative"
    EASY = "easy"
    NONE = "none"
    RLS = "rls"
    UNCOMMITTED = "uncommitted"

    def __str__(self) -> str:
        return str(self.value)
