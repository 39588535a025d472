"""Our simulator as stable-baselines3's VecEnv. It knows no masks: an illegal action does nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from workers.kinds.iterative.simulator import IterativeSimulator


class PeerEnvironment(VecEnv):
    """All environments of one simulator, without a Python object for each."""

    def __init__(self, simulator: IterativeSimulator) -> None:
        super().__init__(simulator.batch, simulator.observation_space, simulator.action_space)
        self.simulator = simulator
        self.rows = np.arange(simulator.batch)
        self.mask: NDArray[np.bool_] = np.zeros((simulator.batch, 1), np.bool_)
        self.actions: NDArray[Any] = np.zeros(simulator.batch, np.int64)

    def reset(self) -> NDArray[Any]:
        """Start all episodes."""
        observation, self.mask = self.simulator.reset()
        return np.array(observation)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions; illegal ones become the one that changes nothing."""
        self.actions = np.where(self.mask[self.rows, actions], actions, self.simulator.layout.noop)

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Take them."""
        step = self.simulator.step(self.actions)
        self.mask = step.mask
        infos: list[dict[str, Any]] = [{} for _ in self.rows]
        for index in np.flatnonzero(step.done):
            infos[index]["terminal_observation"] = np.array(step.final_observation[index])
        return np.array(step.observation), np.array(step.reward), np.array(step.done), infos

    def close(self) -> None:
        """Nothing is held."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """No environment has attributes of its own."""
        del attr_name, indices
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse."""
        raise AttributeError(f"{attr_name} can't be set to {value!r} for {indices!r}")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refuse."""
        raise AttributeError(f"{method_name} can't be called with {args!r}, {kwargs!r} for {indices!r}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No environment is wrapped."""
        del wrapper_class, indices
        return [False] * self.num_envs
