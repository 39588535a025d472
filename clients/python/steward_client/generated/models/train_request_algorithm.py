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
    Q_TABLE = "q_table"

    def __str__(self) -> str:
        return str(self.value)
