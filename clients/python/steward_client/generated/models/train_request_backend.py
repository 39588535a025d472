from enum import StrEnum


class TrainRequestBackend(StrEnum):
    AUTO = "auto"
    JAX = "jax"
    TORCH = "torch"

    def __str__(self) -> str:
        return str(self.value)
