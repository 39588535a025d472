from enum import StrEnum


class AgentReadStatus(StrEnum):
    CHAMPION = "champion"
    FORMER_CHAMPION = "former_champion"
    NEVER_PROMOTED = "never_promoted"

    def __str__(self) -> str:
        return str(self.value)
