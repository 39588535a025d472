from enum import StrEnum


class EvaluationRequestAgentsItemType1(StrEnum):
    CHAMPION = "champion"
    NEWEST = "newest"

    def __str__(self) -> str:
        return str(self.value)
