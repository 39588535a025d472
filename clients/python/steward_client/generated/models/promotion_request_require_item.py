from enum import StrEnum


class PromotionRequestRequireItem(StrEnum):
    OFF_POLICY = "off_policy"
    SHADOW = "shadow"

    def __str__(self) -> str:
        return str(self.value)
