from enum import StrEnum


class TrainRequestAlgorithm(StrEnum):
    AUTO = "auto"
    DOUBLE_DQN = "double_dqn"
    DQN = "dqn"
    DUELING_DOUBLE_DQN = "dueling_double_dqn"
    DUELING_DQN = "dueling_dqn"
    N_STEP_DQN = "n_step_dqn"
    PLANNER = "planner"
    PRIORITISED_DQN = "prioritised_dqn"
    TABULAR_Q = "tabular_q"

    def __str__(self) -> str:
        return str(self.value)
