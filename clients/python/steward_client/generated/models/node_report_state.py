from enum import StrEnum


class NodeReportState(StrEnum):
    FAILED = "failed"
    OFF = "off"
    STARTING = "starting"
    UP = "up"

    def __str__(self) -> str:
        return str(self.value)
