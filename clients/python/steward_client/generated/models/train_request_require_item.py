from enum import StrEnum


class TrainRequestRequireItem(StrEnum):
    OFF_POLICY = "off_policy"
    SHADOW = "shadow"

    def __str__(self) -> str:
        return str(self.value)
