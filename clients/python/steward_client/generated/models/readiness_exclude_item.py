from enum import StrEnum


class ReadinessExcludeItem(StrEnum):
    BROKER = "broker"
    DATABASE = "database"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
