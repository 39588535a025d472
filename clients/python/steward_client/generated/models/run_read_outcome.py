from enum import StrEnum


class RunReadOutcome(StrEnum):
    AT_RISK = "at_risk"
    CANCELLED = "cancelled"
    CAP_REACHED = "cap_reached"
    COMPLETED = "completed"
    FAILED = "failed"
    MET = "met"
    MISSED = "missed"
    ON_TRACK = "on_track"
    STALE = "stale"

    def __str__(self) -> str:
        return str(self.value)
