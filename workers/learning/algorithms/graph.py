"""The graph of the value-based agent: one set of components, wired by the switches of its config."""

from gymnasium import spaces

from workers.learning.algorithms.config import DQN
from workers.learning.build import Node
from workers.learning.components.base import Component
from workers.learning.components.exploration import EpsilonGreedy, Softmax
from workers.learning.components.n_step import STEP, NStep
from workers.learning.components.network import Advice, DuelingHead, LinearHead, Pick, QNetwork, Trunk
from workers.learning.components.optimiser import Adam, Synchroniser
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
)
LEARN_FEEDS = tuple(f"memory.{port}" for port in (*TRANSITION, "weight"))


def root_spaces(observation: Space, actions: spaces.Discrete, noise: int = 2) -> Spaces:
    """Return the spaces of the root inputs, for an environment's observation and action space."""
    mask = spaces.MultiBinary(int(actions.n))
    numbers = ("parameters", "gradient", "first", "second", "count", "rate", "target_parameters", "share", "reward")
    return {
        "observation": observation,
        "action": actions,
        "done": spaces.MultiBinary(()),
        "next_observation": observation,
        "next_mask": mask,
        "mask": mask,
        "epsilon": unit(),
        "noise": unit(noise),
        **{name: reals() for name in numbers},
    }


def network(config: DQN, actions: int, advice: slice | None) -> QNetwork:
    """Return the Q-network of a config."""
    head = DuelingHead(actions) if config.network.dueling else LinearHead(actions)
    skip = Advice(advice.start, advice.stop) if advice is not None and config.network.advice else None
    return QNetwork(Trunk(config.network.layers, config.network.activation), head, skip)


def explorer(config: DQN, actions: spaces.Discrete) -> Component:
    """Return what chooses actions while learning."""
    return Softmax(actions) if config.exploration.schedule == "softmax" else EpsilonGreedy(actions)


def memory(config: DQN) -> Replay:
    """Return the replay memory of a config."""
    wanted = config.memory
    return (
        PrioritisedReplay(wanted.capacity, wanted.alpha, wanted.beta) if wanted.prioritised else Replay(wanted.capacity)
    )


def nodes(config: DQN, actions: spaces.Discrete, advice: slice | None) -> list[Node]:
    """Return the nodes: act, remember, target, loss, optimise, synchronise."""
    q = network(config, int(actions.n), advice)
    next_wire = {"observation": "memory.next_observation", "mask": "memory.next_mask"}
    select = "q_next.values" if config.double else "q_target.values"
    chosen = [Node("q_next", q, next_wire)] if config.double else []
    return [
        Node("q", q, {"observation": "observation", "mask": "mask"}),
        Node(
            "explore",
            explorer(config, actions),
            {"values": "q.values", "mask": "mask", "epsilon": "epsilon", "noise": "noise"},
        ),
        Node("n_step", NStep(config.n_step, config.gamma), {port: port for port in STEP}),
        Node("memory", memory(config), {port: f"n_step.{port}" for port in TRANSITION}),
        Node("q_target", q, next_wire, variables="target"),
        *chosen,
        Node(
            "target",
            Target(),
            {
                "reward": "memory.reward",
                "discount": "memory.discount",
                "mask": "memory.next_mask",
                "select": select,
                "evaluate": "q_target.values",
            },
        ),
        Node("q_learn", q, {"observation": "memory.observation", "mask": "memory.mask"}),
        Node("pick", Pick(), {"values": "q_learn.values", "action": "memory.action"}),
        Node(
            "loss",
            Huber(config.huber),
            {"predicted": "pick.taken", "target": "target.target", "weight": "memory.weight"},
        ),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), {"online": "parameters", "target": "target_parameters", "share": "share"}),
    ]
