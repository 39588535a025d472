from enum import StrEnum


class ReadinessExcludeType0Item(StrEnum):
    BROKER = "broker"
    DATABASE = "database"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
