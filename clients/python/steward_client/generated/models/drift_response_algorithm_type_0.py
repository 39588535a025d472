from enum import StrEnum


class DriftResponseAlgorithmType0(StrEnum):
    A2C = "a2c"
    A3C = "a3c"
    APEX_DQN = "apex_dqn"
    AUTO = "auto"
    DOUBLE_DQN = "double_dqn"
    DQN = "dqn"
    DUELING_DOUBLE_DQN = "dueling_double_dqn"
    DUELING_DQN = "dueling_dqn"
    GRBAL = "grbal"
    N_STEP_DQN = "n_step_dqn"
    ONLINE = "online"
    PLANNER = "planner"
    PPO = "ppo"
    PRIORITISED_DQN = "prioritised_dqn"
    QUANTILE_DQN = "quantile_dqn"
    RECURRENT_PPO = "recurrent_ppo"
    TABULAR_Q = "tabular_q"
    VTRACE = "vtrace"

    def __str__(self) -> str:
        return str(self.value)
