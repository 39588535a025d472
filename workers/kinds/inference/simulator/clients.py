"""The world as the agents of its users learn in it: all act at every decision, each is paid for its own requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.inference.awarding import Client, awarded, clients
from workers.kinds.inference.simulator.world import TERMS, InferenceWorld
from workers.learning.simulator import JointSimulator, Role, Seen, Step

QUALITY, FAIRNESS = TERMS.index("quality"), TERMS.index("fairness")


class Clients(JointSimulator):
    """The world as the agents of its users learn in it together: servers take the best of their offers.

    Agent i is paid w_quality · q_i + w_fairness · J, less what all are charged for servers and switching, where q_i is
    the mean quality of its user's requests in the episode and J is Jain's index of all users'. Both are paid as they
    come about: a batch as it starts, and J as the world pays it, so that what one request moves is paid with it.

    Args:
        world: for learners.
    """

    def __init__(self, world: InferenceWorld) -> None:
        self.world, self.batch = world, world.batch
        self.clients = clients(world.layout)

    @property
    @override
    def roles(self) -> Mapping[str, Role]:
        return {name: _role(client) for name, client in self.clients.items()}

    @override
    def reset(self) -> Mapping[str, Seen]:
        self.world.reset()
        return {name: Seen(*client.seen(self.world.state)) for name, client in self.clients.items()}

    def step(self, actions: Mapping[str, NDArray[np.integer]]) -> Mapping[str, Step]:
        """Award servers to the best offers, and step the world; one ``Step`` for each agent.

        Raises:
            ValueError: an action is not legal.
        """
        world = self.world
        chosen = np.stack([actions[name] for name in self.clients], axis=1)
        common = world.step(awarded(world.projector, world.state, chosen))
        shared = world.terms[:, FAIRNESS:] @ world.weights[FAIRNESS:]
        own = world.weights[QUALITY] * (world.before.missed - world.after.missed)  # [B, U]
        pay = (world.requests * (own - shared[:, None])).astype(np.float32)
        return {name: self._step(client, common, pay[:, client.user]) for name, client in self.clients.items()}

    def _step(self, client: Client, common: Step, pay: NDArray[np.float32]) -> Step:
        observation, mask = client.seen(self.world.state)
        return common._replace(observation=observation, mask=mask, reward=pay, final_observation=observation)

    @override
    def get_state(self) -> dict[str, Any]:
        return self.world.get_state()

    @override
    def set_state(self, state: dict[str, Any]) -> None:
        self.world.set_state(state)


def _role(client: Client) -> Role:
    seen = spaces.Box(-np.inf, np.inf, (len(client.entries),), np.float32)
    return Role(seen, spaces.Discrete(client.actions))
