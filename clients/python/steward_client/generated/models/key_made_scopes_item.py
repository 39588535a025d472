from enum import StrEnum


class KeyMadeScopesItem(StrEnum):
    ADMIN = "admin"
    READ = "read"
    REPORT = "report"
    TRAIN = "train"

    def __str__(self) -> str:
        return str(self.value)
