"""The graph of the actor-critic agent: one set of components, wired by the switches of its config."""

from gymnasium import spaces

from workers.learning.algorithms.config import ActorCritic
from workers.learning.build import Node
from workers.learning.components.advantage import GAE, Estimator, Normalise, VTrace
from workers.learning.components.categorical import Draw, LogProbability
from workers.learning.components.network import LinearHead, Trunk
from workers.learning.components.optimiser import Adam, Synchroniser
from workers.learning.components.policy_gradient import ActorCriticLoss, ClippedSurrogate, Surrogate, ValueLoss
from workers.learning.components.policy_network import Critic, PolicyNetwork, TemperedAdvice
from workers.learning.components.rollout import SLAB, Rollout
from workers.learning.spaces import Space, Spaces, reals, unit

EXAMPLE = ("observation", "mask", "action", "log_prob", "advantage", "target", "old")
"""What the loss is fed, besides the entropy's weight."""
TRAJECTORY = ("rewards", "ends", "values", "last", "log_probs", "behaviours")
"""What the estimator is fed, [B, T] each, but `last` [B]."""
FLAT = ("parameters", "gradient", "first", "second", "count", "rate", "target_parameters", "share")
INPUTS = (*SLAB, "noise", *TRAJECTORY, "advantage", "target", "old", "entropy_weight", *FLAT)
POLICY, CRITIC = "policy.", "critic."
"""Where the variables of the two networks stand in the flat vector, by name."""


def root_spaces(config: ActorCritic, observation: Space, actions: spaces.Discrete) -> Spaces:
    """Return the spaces of the root inputs, for an environment's observation and action space."""
    mask, steps = spaces.MultiBinary(int(actions.n)), config.rollout
    numbers = ("reward", "log_prob", "last", "advantage", "target", "old", "entropy_weight", *FLAT)
    return {
        "observation": observation,
        "mask": mask,
        "action": actions,
        "done": spaces.MultiBinary(()),
        "next_observation": observation,
        "next_mask": mask,
        "noise": unit(int(actions.n)),
        "ends": spaces.MultiBinary(steps),
        **{name: reals(steps) for name in ("rewards", "values", "log_probs", "behaviours")},
        **{name: reals() for name in numbers},
    }


def policy(config: ActorCritic, actions: int, advice: slice | None) -> PolicyNetwork:
    """Return the actor's network."""
    wanted = config.network
    used = advice if wanted.advice else None
    skip = None if used is None else TemperedAdvice(used.start, used.stop, config.temperature)
    return PolicyNetwork(Trunk(wanted.layers, wanted.activation), LinearHead(actions), skip)


def critic(config: ActorCritic) -> Critic:
    """Return the critic's network; it shares nothing with the actor's."""
    return Critic(Trunk(config.network.layers, config.network.activation))


def estimator(config: ActorCritic) -> Estimator:
    """Return what turns rewards and values into advantages."""
    if config.estimator == "vtrace":
        return VTrace(config.gamma, config.trace, config.rho, config.cut)
    return GAE(config.gamma, config.trace)


def nodes(config: ActorCritic, actions: spaces.Discrete, advice: slice | None) -> list[Node]:
    """Return the nodes: act, remember, estimate, loss, optimise, average."""
    return [*_acting(config, actions, advice), *_learning(config)]


def _acting(config: ActorCritic, actions: spaces.Discrete, advice: slice | None) -> list[Node]:
    return [
        Node("policy", policy(config, int(actions.n), advice), {"observation": "observation", "mask": "mask"}),
        Node("critic", critic(config), {"observation": "observation"}),
        Node("draw", Draw(actions), {"logits": "policy.logits", "mask": "mask", "noise": "noise"}),
        Node("rollout", Rollout(config.rollout), {port: port for port in SLAB}),
    ]


def _learning(config: ActorCritic) -> list[Node]:
    estimate = estimator(config)
    ports = dict(zip(("reward", "done", "value", "last", "log_prob", "behaviour"), TRAJECTORY, strict=True))
    surrogate = ClippedSurrogate(config.clip) if config.surrogate == "clipped" else Surrogate()
    return [
        Node("estimate", estimate, {port: ports[port] for port in estimate.takes}),
        Node("normalise", Normalise(), {"advantage": "advantage"}),
        Node("chance", LogProbability(), {"logits": "policy.logits", "mask": "mask", "action": "action"}),
        Node(
            "surrogate",
            surrogate,
            {"log_prob": "chance.log_prob", "behaviour": "log_prob", "advantage": "advantage"},
        ),
        Node("error", ValueLoss(config.value_clip), {"value": "critic.value", "target": "target", "old": "old"}),
        Node(
            "loss",
            ActorCriticLoss(config.value_weight),
            {
                "policy": "surrogate.loss",
                "value": "error.loss",
                "entropy": "chance.entropy",
                "entropy_weight": "entropy_weight",
            },
        ),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), {"online": "parameters", "target": "target_parameters", "share": "share"}),
    ]
