from enum import StrEnum


class TrainRequestDevice(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"

    def __str__(self) -> str:
        return str(self.value)
