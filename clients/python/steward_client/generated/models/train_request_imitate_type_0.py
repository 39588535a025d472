from enum import StrEnum


class TrainRequestImitateType0(StrEnum):
    HOLD = "hold"
    MODEL_PREDICTIVE = "model_predictive"
    PID = "pid"
    PLANNER = "planner"
    SOONEST = "soonest"
    STATIC_BEST = "static_best"
    THRESHOLD = "threshold"

    def __str__(self) -> str:
        return str(self.value)
