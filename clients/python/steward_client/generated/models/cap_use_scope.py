from enum import StrEnum


class CapUseScope(StrEnum):
    RUN = "run"
    TENANT = "tenant"
    WORKLOAD = "workload"

    def __str__(self) -> str:
        return str(self.value)
