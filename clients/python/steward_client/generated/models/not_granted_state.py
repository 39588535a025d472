from enum import StrEnum


class NotGrantedState(StrEnum):
    REFUSED = "refused"
    REQUESTED = "requested"
    TIMED_OUT = "timed_out"

    def __str__(self) -> str:
        return str(self.value)
