from enum import StrEnum


class AdaptationReadState(StrEnum):
    FAILED = "failed"
    FITTING = "fitting"
    KEPT = "kept"
    REJECTED = "rejected"
    ROLLED_BACK = "rolled_back"
    SHADOW = "shadow"
    SUPERSEDED = "superseded"
    TRAINING = "training"
    WATCHED = "watched"

    def __str__(self) -> str:
        return str(self.value)
