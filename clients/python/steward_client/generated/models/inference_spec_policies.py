from enum import StrEnum


class InferenceSpecPolicies(StrEnum):
    ONE = "one"
    PER_USER = "per_user"

    def __str__(self) -> str:
        return str(self.value)
