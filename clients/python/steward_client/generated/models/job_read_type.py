from enum import StrEnum


class JobReadType(StrEnum):
    EVALUATE = "evaluate"
    FIT = "fit"
    TRAIN = "train"
    TRIAL = "trial"

    def __str__(self) -> str:
        return str(self.value)
