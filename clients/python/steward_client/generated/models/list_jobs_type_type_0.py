from enum import StrEnum


class ListJobsTypeType0(StrEnum):
    EVALUATE = "evaluate"
    FIT = "fit"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
