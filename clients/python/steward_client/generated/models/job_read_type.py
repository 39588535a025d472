from enum import StrEnum


class JobReadType(StrEnum):
    FIT = "fit"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
