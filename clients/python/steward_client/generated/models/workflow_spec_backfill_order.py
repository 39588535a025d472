from enum import StrEnum


class WorkflowSpecBackfillOrder(StrEnum):
    FCFS = "fcfs"
    SJF = "sjf"

    def __str__(self) -> str:
        return str(self.value)
