from enum import StrEnum


class TrainRequestExecutor(StrEnum):
    PROCESSES = "processes"
    RAY = "ray"
    SERIAL = "serial"

    def __str__(self) -> str:
        return str(self.value)
