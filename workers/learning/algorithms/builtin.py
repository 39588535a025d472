"""The built-in algorithms, referenced by the package's entry points."""

from workers.learning.algorithms.actor_critic import ActorCriticLearner
from workers.learning.algorithms.config import DQN, NAMED, QTable
from workers.learning.algorithms.dqn import ValueLearner
from workers.learning.algorithms.q_table import TableLearner
from workers.learning.algorithms.registry import ALONE, Algorithm


def _algorithm(name: str) -> Algorithm:
    config = NAMED[name]
    if isinstance(config, QTable):
        return Algorithm(
            name,
            config,
            lambda config, spaces, _backend: TableLearner(config, spaces.observation, spaces.actions),
            ranks=frozenset({1}),
            executors=ALONE,
        )
    learner = ValueLearner if isinstance(config, DQN) else ActorCriticLearner
    return Algorithm(name, config, lambda config, spaces, backend: learner(config, *spaces, backend))


tabular_q = _algorithm("tabular_q")
dqn = _algorithm("dqn")
double_dqn = _algorithm("double_dqn")
dueling_dqn = _algorithm("dueling_dqn")
dueling_double_dqn = _algorithm("dueling_double_dqn")
n_step_dqn = _algorithm("n_step_dqn")
prioritised_dqn = _algorithm("prioritised_dqn")
quantile_dqn = _algorithm("quantile_dqn")
apex_dqn = _algorithm("apex_dqn")
a2c = _algorithm("a2c")
a3c = _algorithm("a3c")
ppo = _algorithm("ppo")
recurrent_ppo = _algorithm("recurrent_ppo")
vtrace = _algorithm("vtrace")
