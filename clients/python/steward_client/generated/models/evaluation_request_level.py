from enum import StrEnum


class EvaluationRequestLevel(StrEnum):
    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"

    def __str__(self) -> str:
        return str(self.value)
