"""The graph of the value-based agent: one set of components, wired by the switches of its config."""

from collections.abc import Callable

from gymnasium import spaces

from workers.learning.algorithms import sets
from workers.learning.algorithms.config import DQN, Scorer
from workers.learning.build import Node
from workers.learning.components.base import Component
from workers.learning.components.exploration import EpsilonGreedy, Softmax
from workers.learning.components.margin import Joined, LargeMargin
from workers.learning.components.n_step import STEP, NStep
from workers.learning.components.network import DuelingHead, LinearHead, Pick, QNetwork, Trunk
from workers.learning.components.optimiser import Adam, Synchroniser
from workers.learning.components.quantile import (
    DuelingQuantileHead,
    PickQuantiles,
    QuantileHead,
    QuantileHuber,
    QuantileNetwork,
    QuantileTarget,
)
from workers.learning.components.replay import TRANSITION, PrioritisedReplay, Replay
from workers.learning.components.value import Huber, Target
from workers.learning.spaces import Space, Spaces, reals, unit

INPUTS = (
    *STEP,
    "epsilon",
    "noise",
    "parameters",
    "gradient",
    "first",
    "second",
    "count",
    "rate",
    "target_parameters",
    "share",
    "expert",
)


def root_spaces(observation: Space, actions: spaces.Discrete, noise: int = 2) -> Spaces:
    """Return the spaces of the root inputs, for an environment's observation and action space."""
    mask = spaces.MultiBinary(int(actions.n))
    numbers = (
        "parameters",
        "gradient",
        "first",
        "second",
        "count",
        "rate",
        "target_parameters",
        "share",
        "reward",
        "expert",
    )
    return {
        "observation": observation,
        "action": actions,
        "done": spaces.MultiBinary(()),
        "next_observation": observation,
        "next_mask": mask,
        "mask": mask,
        "epsilon": unit(),
        "noise": unit(noise),
        **{name: reals() for name in (*numbers, "expert")},
    }


def network(config: DQN, actions: int, advice: slice | None) -> Component:
    """Return the Q-network of a config: observation, mask → values [N] (and quantiles [N, K])."""
    if config.network.scorer is not None:
        return _scorer(config, config.network.scorer, advice)
    trunk = Trunk(config.network.layers, config.network.activation)
    if config.quantiles:
        many = (DuelingQuantileHead if config.network.dueling else QuantileHead)(actions, config.quantiles)
        return QuantileNetwork(trunk, many)
    head = DuelingHead(actions) if config.network.dueling else LinearHead(actions)
    return QNetwork(trunk, head)


def _scorer(config: DQN, wanted: Scorer, advice: slice | None) -> Component:
    """Candidates are scored one by one. Raises ValueError for switches that ask for another head."""
    if config.quantiles or config.network.dueling:
        raise ValueError("a scorer of candidates has one plain head: without quantiles and not dueling")
    return sets.scorer(wanted, config.network, advice)


def explorer(config: DQN, actions: spaces.Discrete) -> Component:
    """Return what chooses actions while learning."""
    return Softmax(actions) if config.exploration.schedule == "softmax" else EpsilonGreedy(actions)


def memory(config: DQN) -> Replay:
    """Return the replay memory of a config."""
    wanted = config.memory
    return (
        PrioritisedReplay(wanted.capacity, wanted.alpha, wanted.beta) if wanted.prioritised else Replay(wanted.capacity)
    )


def nodes(
    config: DQN,
    actions: spaces.Discrete,
    advice: slice | None,
    targets: Callable[[DQN, Component], list[Node]],
) -> list[Node]:
    """Return the nodes: act, remember, target, loss, optimise, synchronise."""
    q = network(config, int(actions.n), advice)
    given = {"values": "q.values", "mask": "mask", "epsilon": "epsilon", "noise": "noise"}
    both = {"online": "parameters", "target": "target_parameters", "share": "share"}
    return [
        Node("q", q, {"observation": "observation", "mask": "mask"}),
        Node("explore", explorer(config, actions), given),
        Node("n_step", NStep(config.n_step, config.gamma), {port: port for port in STEP}),
        Node("memory", memory(config), {port: f"n_step.{port}" for port in TRANSITION}),
        *targets(config, q),
        *learning(config, q),
        *imitating(config),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), both),
    ]


def bellman(config: DQN, q: Component) -> list[Node]:
    """Return what gives `target.target`: the reward, and what the target network thinks of what follows."""
    following = {"observation": "memory.next_observation", "mask": "memory.next_mask"}
    chosen = [Node("q_next", q, following)] if config.double else []
    kind = "quantiles" if config.quantiles else "values"
    wires = {
        **{port: f"memory.{port}" for port in ("reward", "discount")},
        "mask": "memory.next_mask",
        "select": "q_next.values" if config.double else "q_target.values",
        "evaluate": f"q_target.{kind}",
    }
    target = Node("target", QuantileTarget() if config.quantiles else Target(), wires)
    return [Node("q_target", q, following, variables="target"), *chosen, target]


def learning(config: DQN, q: Component) -> list[Node]:
    """Return what gives `loss.loss` and `loss.error` of a batch from the memory."""
    kind = "quantiles" if config.quantiles else "values"
    loss = QuantileHuber(config.huber) if config.quantiles else Huber(config.huber)
    return [
        Node("q_learn", q, {"observation": "memory.observation", "mask": "memory.mask"}),
        Node(
            "pick",
            PickQuantiles() if config.quantiles else Pick(),
            {kind: f"q_learn.{kind}", "action": "memory.action"},
        ),
        Node("loss", loss, {"predicted": "pick.taken", "target": "target.target", "weight": "memory.weight"}),
    ]


def imitating(config: DQN) -> list[Node]:
    """Return the memory of demonstrations, and what joins the large-margin loss to the other; nothing without them."""
    wanted = config.imitation
    if wanted is None:
        return []
    seen = {"mask": "memory.mask", "action": "memory.action", "expert": "expert"}
    return [
        Node("demonstrations", Replay(wanted.capacity), {port: f"n_step.{port}" for port in TRANSITION}),
        Node("margin", LargeMargin(wanted.margin), {"values": "q_learn.values", **seen}),
        Node("joined", Joined(wanted.weight), {"loss": "loss.loss", "other": "margin.loss"}),
    ]
