"""The project's own algorithms; its entry points name them."""

from workers.learning.algorithms.actor_critic import ActorCriticLearner
from workers.learning.algorithms.base import Learner
from workers.learning.algorithms.config import DQN, NAMED, ActorCritic, QTable
from workers.learning.algorithms.dqn import ValueLearner
from workers.learning.algorithms.q_table import TableLearner
from workers.learning.algorithms.registry import ALONE, AgentSpaces, Algorithm
from workers.learning.backends.base import Backend


def _values(config: DQN, seen: AgentSpaces, backend: Backend) -> Learner:
    return ValueLearner(config, *seen, backend)


def _actor_critic(config: ActorCritic, seen: AgentSpaces, backend: Backend) -> Learner:
    return ActorCriticLearner(config, *seen, backend)


def _table(config: QTable, seen: AgentSpaces, backend: Backend) -> Learner:
    del backend
    return TableLearner(config, seen.observation, seen.actions)


def _algorithm(name: str) -> Algorithm:
    config = NAMED[name]
    if isinstance(config, QTable):
        return Algorithm(name, config, _table, ranks=frozenset({1}), executors=ALONE)
    return Algorithm(name, config, _values if isinstance(config, DQN) else _actor_critic)


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
