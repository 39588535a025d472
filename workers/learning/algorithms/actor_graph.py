"""The graph of the actor-critic agent: one set of components, wired by the switches of its config."""

from gymnasium import spaces

from workers.learning.algorithms import sets
from workers.learning.algorithms.config import ActorCritic
from workers.learning.build import Node
from workers.learning.components.advantage import GAE, Estimator, Normalise, VTrace
from workers.learning.components.base import Component
from workers.learning.components.categorical import Draw, LogProbability
from workers.learning.components.network import LinearHead, Trunk
from workers.learning.components.optimiser import Adam, Synchroniser
from workers.learning.components.policy_gradient import (
    ActorCriticLoss,
    ClippedSurrogate,
    NegativeLogLikelihood,
    Surrogate,
    ValueLoss,
)
from workers.learning.components.policy_network import Critic, PolicyNetwork
from workers.learning.components.recurrent import GRU
from workers.learning.components.rollout import SLAB, RecurrentRollout, Rollout, stacked
from workers.learning.spaces import Space, Spaces, reals, unit

EXAMPLE = ("observation", "mask", "action", "log_prob", "advantage", "target", "old")
"""What the loss is fed, besides the entropy's weight."""
TRAJECTORY = ("rewards", "ends", "values", "last", "log_probs", "behaviours")
"""What the estimator is fed, [B, T] each, but `last` [B]."""
FLAT = ("parameters", "gradient", "first", "second", "count", "rate", "target_parameters", "share")
INPUTS = (*SLAB, "noise", *TRAJECTORY, "advantage", "target", "old", "entropy_weight", *FLAT)
UNROLLED = ("sequence", "begins", "memory")
"""What a recurrent core is fed, in place of observations."""
CORE, POLICY, CRITIC = "core.", "policy.", "critic."
"""Where the variables of the recurrent core and the two networks stand in the flat vector, by name."""
ACTOR = (CORE, POLICY)
"""What acts."""


def inputs(config: ActorCritic) -> tuple[str, ...]:
    """Return the names of the root inputs."""
    return (*INPUTS, *UNROLLED) if config.recurrent else INPUTS


def root_spaces(config: ActorCritic, observation: Space, actions: spaces.Discrete) -> Spaces:
    """Return the spaces of the root inputs, for an environment's observation and action space."""
    mask, steps = spaces.MultiBinary(int(actions.n)), config.rollout
    numbers = ("reward", "log_prob", "last", "advantage", "target", "old", "entropy_weight", *FLAT)
    core = _core_spaces(config, observation) if config.recurrent else {}
    return {
        **core,
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


def _core_spaces(config: ActorCritic, observation: Space) -> Spaces:
    return {
        "sequence": stacked(observation, config.rollout),
        "begins": spaces.MultiBinary(config.rollout),
        "memory": reals(config.recurrent or 0),
    }


def policy(config: ActorCritic, actions: int, advice: slice | None) -> Component:
    """Return the actor's network: observation, mask → logits."""
    wanted = config.network
    if wanted.scorer is not None:
        return sets.scorer(wanted.scorer, wanted, advice, config.temperature, "logits")
    return PolicyNetwork(Trunk(wanted.layers, wanted.activation), LinearHead(actions))


def critic(config: ActorCritic) -> Component:
    """Return the critic's network; it shares nothing with the actor's (but a recurrent core)."""
    if config.network.scorer is not None:
        return sets.critic(config.network.scorer, config.network)
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
    seen = {"observation": "core.observation" if config.recurrent else "observation", "mask": "mask"}
    core = [Node("core", GRU(config.recurrent), {port: port for port in UNROLLED})] if config.recurrent else []
    value = critic(config)
    rollout = (RecurrentRollout if config.recurrent else Rollout)(config.rollout)
    return [
        *core,
        Node("policy", policy(config, int(actions.n), advice), seen),
        Node("critic", value, {port: seen[port] for port in value.takes}),
        Node("draw", Draw(actions), {"logits": "policy.logits", "mask": "mask", "noise": "noise"}),
        Node("rollout", rollout, {port: port for port in rollout.takes}),
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
        Node("surprise", NegativeLogLikelihood(), {"log_prob": "chance.log_prob"}),
        Node("error", ValueLoss(config.value_clip), {"value": "critic.value", "target": "target", "old": "old"}),
        _summed("loss", config, "surrogate.loss"),
        _summed("cloned", config, "surprise.loss"),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), {"online": "parameters", "target": "target_parameters", "share": "share"}),
    ]


def _summed(name: str, config: ActorCritic, policy_loss: str) -> Node:
    """The loss of an example: the policy's, the value's and the entropy's."""
    rest = {"value": "error.loss", "entropy": "chance.entropy", "entropy_weight": "entropy_weight"}
    return Node(name, ActorCriticLoss(config.value_weight), {"policy": policy_loss, **rest})
