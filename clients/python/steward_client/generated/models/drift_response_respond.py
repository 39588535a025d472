from enum import StrEnum


class DriftResponseRespond(StrEnum):
    OFF = "off"
    RETRAIN = "retrain"

    def __str__(self) -> str:
        return str(self.value)
