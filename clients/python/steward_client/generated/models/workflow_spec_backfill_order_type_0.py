from enum import StrEnum


class WorkflowSpecBackfillOrderType0(StrEnum):
    FCFS = "fcfs"
    SJF = "sjf"

    def __str__(self) -> str:
        return str(self.value)
