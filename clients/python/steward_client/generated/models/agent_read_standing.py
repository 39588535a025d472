from enum import StrEnum


class AgentReadStanding(StrEnum):
    CURRENT = "current"
    OUTDATED = "outdated"
    RE_EVALUATE = "re_evaluate"

    def __str__(self) -> str:
        return str(self.value)
