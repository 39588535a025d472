from enum import StrEnum


class RequestedAllocationState(StrEnum):
    REFUSED = "refused"
    REQUESTED = "requested"
    TIMED_OUT = "timed_out"

    def __str__(self) -> str:
        return str(self.value)
