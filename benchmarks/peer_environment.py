"""Our simulator as stable-baselines3's VecEnv, and a policy of its PPO that sees the same masks as ours."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

from workers.kinds.iterative.simulator import IterativeSimulator


class PeerEnvironment(VecEnv):
    """All environments of one simulator, without a Python object for each; an illegal action does nothing.

    With ``masks``, an observation ends with which actions are legal, as `MaskedPolicy` reads it.
    """

    def __init__(self, simulator: IterativeSimulator, *, masks: bool = False) -> None:
        wide = int(simulator.observation_space.shape[0]) + masks * int(simulator.action_space.n)
        super().__init__(simulator.batch, spaces.Box(-np.inf, np.inf, (wide,), np.float32), simulator.action_space)
        self.simulator, self.masks = simulator, masks
        self.rows = np.arange(simulator.batch)
        self.mask: NDArray[np.bool_] = np.zeros((simulator.batch, 1), np.bool_)
        self.actions: NDArray[Any] = np.zeros(simulator.batch, np.int64)

    def reset(self) -> NDArray[Any]:
        """Start all episodes."""
        observation, self.mask = self.simulator.reset()
        return self._shown(observation, self.mask)

    def _shown(self, observation: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
        parts = (observation, mask.astype(np.float32)) if self.masks else (observation,)
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions; illegal ones become the one that changes nothing."""
        self.actions = np.where(self.mask[self.rows, actions], actions, self.simulator.layout.noop)

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Take them."""
        step = self.simulator.step(self.actions)
        self.mask = step.mask
        infos: list[dict[str, Any]] = [{} for _ in self.rows]
        for index in np.flatnonzero(step.done):
            infos[index]["terminal_observation"] = self._shown(step.final_observation, step.mask)[index]
        return self._shown(step.observation, step.mask), np.array(step.reward), np.array(step.done), infos

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


class Unmasked(BaseFeaturesExtractor):
    """The observation without the mask at its end, which it keeps for the policy."""

    def __init__(self, observation_space: spaces.Box, actions: int) -> None:
        super().__init__(observation_space, int(observation_space.shape[0]) - actions)
        self.actions = actions
        self.mask = torch.ones(0)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """[B, D + N] → [B, D]."""
        self.mask = observations[:, -self.actions :] > 0
        return observations[:, : -self.actions]


class MaskedPolicy(ActorCriticPolicy):
    """Illegal actions have probability 0 and no gradient, as ours do (Huang & Ontañón, 2022)."""

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        logits = self.action_net(latent_pi)
        mask = self.features_extractor.mask
        return self.action_dist.proba_distribution(logits.masked_fill(~mask, -1e8))
