from enum import StrEnum


class ResponseQualityShape(StrEnum):
    EXPONENTIAL = "exponential"
    LINEAR = "linear"

    def __str__(self) -> str:
        return str(self.value)
