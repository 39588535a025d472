"""PPO on the simulator: the engine's actor-critic agent with a network over candidate sets.

It begins as the base strategy: its network adds nothing to the advice, until it has learned something. That
is an imitation start in its exact form: nothing has to be cloned.
"""

import msgspec
import numpy as np

from app.kinds.workflow.scheduling.observation import WIDTH
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.environment import WorkflowSimulator
from workers.kinds.workflow.training.widths import JOINT, WIDE
from workers.learning.algorithms.config.policy import PPO, Entropy
from workers.learning.algorithms.config.shared import DeviceConfig, Network, Scorer
from workers.learning.execution.base import Plan
from workers.learning.execution.serial import Serial

CONFIG = msgspec.structs.replace(
    PPO,
    network=Network(scorer=Scorer(layers=(WIDE,), context="none", joint=(JOINT,))),
    temperature=0.1,
    rollout=64,
    trace=0.97,
    epochs=4,
    batch=2_048,
    stop=0.02,
    entropy=Entropy(start=0.001),
    place=DeviceConfig(device="cpu"),
)


class Proximal:
    """PPO for a number of environment steps."""

    def __init__(self, simulator: WorkflowSimulator, steps: int, seed: int) -> None:
        plan = Plan(steps, chunk_steps=max(simulator.batch * CONFIG.rollout, 1))
        self.learner = Serial(CONFIG, simulator, plan, seed)

    @property
    def progress(self) -> float:
        """Share that is done, 0 to 1."""
        return self.learner.progress

    def advance(self) -> None:
        """One rollout, and the epochs over it."""
        self.learner.advance()

    def parameters(self) -> Seconds:
        """What was learned, as ``agents.networks`` takes it, [P]."""
        arrays = self.learner.agent.export()[2]
        return flat({name: np.asarray(value, np.float64) for name, value in arrays.items()})


def flat(arrays: dict[str, Seconds]) -> Seconds:
    """The arrays of a served network as one vector [P]."""
    parts = [arrays["each.0.weight"].T, arrays["each.0.bias"], arrays["joint.0.weight"].T, arrays["joint.0.bias"]]
    return np.concatenate([part.ravel() for part in (*parts, arrays["advantage.weight"], arrays["advantage.bias"])])


def named(point: Seconds, wide: int, joint: int) -> dict[str, Seconds]:
    """The inverse of ``flat``."""
    cuts = np.cumsum([WIDTH * wide, wide, wide * joint, joint, joint])
    first, first_bias, second, second_bias, last, last_bias = np.split(point, cuts)
    return {
        "each.0.weight": np.ascontiguousarray(first.reshape(WIDTH, wide).T),
        "each.0.bias": first_bias,
        "joint.0.weight": np.ascontiguousarray(second.reshape(wide, joint).T),
        "joint.0.bias": second_bias,
        "advantage.weight": last.reshape(1, joint),
        "advantage.bias": last_bias,
    }
