"""Munchausen DQN (Vieillard, Pietquin & Geist, 2020): a DQN that is also paid for how sure it is of what it did.

With the softmax policy π of the target network's values at temperature τ, the target of (s, a, r, s') is

    r + α · clip(τ · log π(a|s), l₀, 0) + γ · Σ_b π(b|s') · (q(s', b) − τ · log π(b|s')),

over legal actions. Everything else (memory, n-step window, optimiser, schedules, executors, export) is the project's.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from gymnasium import spaces

from workers.learning.algorithms.base import Learner
from workers.learning.algorithms.config import DQN, SERVED
from workers.learning.algorithms.dqn import ValueLearner
from workers.learning.algorithms.registry import AgentSpaces, Algorithm
from workers.learning.backends import Backend
from workers.learning.components.base import Arrays, Component, Node, Spaces, reals
from workers.learning.components.value import FORBIDDEN


class Munchausen(DQN, frozen=True, forbid_unknown_fields=True, tag="munchausen_dqn"):
    """A DQN's config, and three numbers; defaults are the paper's, but for τ, which is in the unit of the reward.

    `share`: α, of the log-probability that is paid. `temperature`: τ. `lowest`: l₀, where that pay is cut.
    """

    share: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.9
    temperature: Annotated[float, msgspec.Meta(gt=0.0)] = 0.01
    lowest: Annotated[float, msgspec.Meta(le=0.0)] = -1.0


def policy(xp: Any, values: Any, mask: Any, temperature: float) -> tuple[Any, Any]:
    """Return π [B, N] and τ · log π [B, N] of values [B, N]; where the mask forbids, both are 0."""
    legal = xp.where(mask, values, xp.full_like(values, FORBIDDEN))
    ahead = legal - xp.max(legal, axis=1, keepdims=True)
    weight = xp.where(mask, xp.exp(ahead / temperature), xp.zeros_like(values))
    total = xp.sum(weight, axis=1, keepdims=True)
    return weight / total, xp.where(mask, ahead - temperature * xp.log(total), xp.zeros_like(values))


class MunchausenTarget(Component):
    """Reward, discount, action; the target network's values before and after, with their masks → target."""

    takes: ClassVar = ("reward", "discount", "action", "before", "mask", "after", "next_mask")

    def __init__(self, share: float, temperature: float, lowest: float) -> None:
        self.share, self.temperature, self.lowest = share, temperature, lowest

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Check the inputs: [B] or [B, N]; the target is one number per transition."""
        for port in ("reward", "discount"):
            self.scalar(inputs, port)
        for port in ("before", "mask", "after", "next_mask"):
            self.vector(inputs, port)
        return {"target": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The target, [B]: reward, share of τ · log π of the action taken, discounted soft value of what follows."""
        del variables
        _, logs = policy(xp, inputs["before"], inputs["mask"], self.temperature)
        chosen = xp.take_along_axis(logs, xp.reshape(inputs["action"], (-1, 1)), axis=1)[:, 0]
        chance, logs = policy(xp, inputs["after"], inputs["next_mask"], self.temperature)
        following = xp.sum(chance * (inputs["after"] - logs), axis=1)
        paid = inputs["reward"] + self.share * xp.clip(chosen, self.lowest, 0.0)
        return {"target": paid + inputs["discount"] * following}


def targets(config: DQN, q: Component) -> list[Node]:
    """Return the nodes that give `target.target`, in place of the Bellman target's."""
    assert isinstance(config, Munchausen)  # noqa: S101  (narrows the type)
    before = {"observation": "memory.observation", "mask": "memory.mask"}
    after = {"observation": "memory.next_observation", "mask": "memory.next_mask"}
    wires = {
        **{port: f"memory.{port}" for port in ("reward", "discount", "action", "mask", "next_mask")},
        "before": "q_before.values",
        "after": "q_target.values",
    }
    target = MunchausenTarget(config.share, config.temperature, config.lowest)
    return [
        Node("q_before", q, before, variables="target"),
        Node("q_target", q, after, variables="target"),
        Node("target", target, wires),
    ]


def build(config: Munchausen, agent_spaces: AgentSpaces, backend: Backend) -> Learner:
    """Build the learner. Raises ValueError for a switch that has no place in it."""
    if config.quantiles or config.double or not isinstance(agent_spaces.actions, spaces.Discrete):
        raise ValueError("Munchausen DQN learns mean values of discrete actions, by one softmax policy")
    return ValueLearner(config, *agent_spaces, backend, targets)


_SERVED = {name: getattr(SERVED, name) for name in SERVED.__struct_fields__}
ALGORITHM = Algorithm("munchausen_dqn", Munchausen(**_SERVED), build)
