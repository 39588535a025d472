from enum import StrEnum


class ServerChangeState(StrEnum):
    DOWN = "down"
    STARTING = "starting"
    UP = "up"

    def __str__(self) -> str:
        return str(self.value)
