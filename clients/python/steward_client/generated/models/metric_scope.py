from enum import StrEnum


class MetricScope(StrEnum):
    ITERATION = "iteration"
    RUN = "run"

    def __str__(self) -> str:
        return str(self.value)
