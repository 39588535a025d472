"""The actor-critic agent: A2C, A3C, PPO and V-trace by the switches of its config."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import actor_graph as graph
from workers.learning.algorithms.base import Acted, Actions, Experience, LearnStats, Masks, Observations
from workers.learning.algorithms.config import ActorCritic
from workers.learning.algorithms.dqn import learning_rate
from workers.learning.backends import Backend
from workers.learning.backends.base import Array
from workers.learning.build import Bound, bind, complete, compose
from workers.learning.components.exploration import Linear
from workers.learning.components.rollout import Rollout
from workers.learning.execution.checkpoint import part
from workers.learning.spaces import Space

Batch = dict[str, Array]
FETCHES = ("loss.loss", "surrogate.divergence", "chance.entropy")
PATIENCE = 1.5  # times the divergence that is aimed at, beyond which a rollout is left


class ActorCriticAgent:
    """A built agent: the bound graph, its optimiser's moments, and the running average that is exported."""

    def __init__(
        self,
        config: ActorCritic,
        observation: Space,
        actions: spaces.Discrete,
        advice: slice | None,
        backend: Backend,
        rng: np.random.Generator,
    ) -> None:
        self.config, self.advice, self.actions, self.backend = config, advice, int(actions.n), backend
        nodes = graph.nodes(config, actions, advice)
        completed = complete(compose(graph.INPUTS, nodes), graph.root_spaces(config, observation, actions))
        self.bound: Bound = bind(completed, backend, rng)
        self.report = self.bound.report
        self.rollout: Rollout = next(node.component for node in nodes if isinstance(node.component, Rollout))
        self.entropy = Linear(config.entropy.start, config.entropy.end, config.entropy.fraction)
        self.updates, self._averaging = 0, False
        zeros = np.zeros(self.report.parameters, np.float32)
        self.first, self.second = backend.asarray(zeros.copy()), backend.asarray(zeros.copy())
        self.average = backend.asarray(zeros.copy())

    def act(self, observation: Observations, mask: Masks, progress: float, rng: np.random.Generator) -> Acted:
        """Draw from the policy: [B, D], [B, N] → [B]."""
        del progress
        give = self.backend.asarray
        noise = rng.random((len(observation), self.actions), np.float32)
        feeds = {"observation": give(observation), "mask": give(mask), "noise": give(noise)}
        with self.backend.without_gradient():
            found = self.bound.run(("draw.action", "draw.log_prob"), feeds)
        return Acted(self.backend.to_numpy(found["draw.action"]), self.backend.to_numpy(found["draw.log_prob"]))

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """The likeliest legal action under the parameters that would be exported."""
        return np.where(mask, self.values(observation, mask), -np.inf).argmax(axis=1)

    def values(self, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Preferences in the unit of the reward, as exported: temperature · logits, [B, D], [B, N] → [B, N]."""
        exported = {"online": self.bound.stores["online"].cut(self._exported())}
        feeds = {"observation": self.backend.asarray(observation), "mask": self.backend.asarray(mask)}
        with self.backend.without_gradient():
            logits = self.bound.run(("policy.logits",), feeds, exported)["policy.logits"]
        return self.backend.to_numpy(logits) * np.float32(self.config.temperature)

    def remember(self, experience: Experience) -> None:
        """Append to the rollout; slabs must follow one another, all of the same environments."""
        self.rollout.push(experience._asdict())

    def learn(self, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Learn from a full rollout, and begin the next."""
        if not self.rollout.full:
            return None
        batch, config = self._taken(), self.config
        rate, weight = learning_rate(config.optimiser, progress), float(self.entropy.epsilon(progress, 1)[0])
        figures: list[tuple[Array, Array]] = []
        for epoch in range(config.epochs):
            if epoch == 0 or config.estimator == "vtrace":
                batch.update(self._estimated(batch))
            if not self._epoch(batch, rate, weight, rng, figures):
                break
        self._averaged(progress)
        loss, entropy = (float(sum(column) / len(figures)) for column in zip(*figures, strict=True))
        return LearnStats(len(figures), loss, rate, entropy)

    def _taken(self) -> Batch:
        """The rollout on the backend: [B·T, …] each, but `last_observation` [B, D]; it is then forgotten."""
        batch = {}
        for port, value in self.rollout.slabs.items():
            flat = value if port == "last_observation" else value.reshape(-1, *value.shape[2:])
            batch[port] = self.backend.asarray(flat)
        self.rollout.clear()
        return batch

    def _estimated(self, batch: Batch) -> Batch:
        """Advantages and targets of the examples, [B·T]; `old` are the values now."""
        shape, behaviour = (-1, self.config.rollout), batch["log_prob"]
        off_policy = self.config.estimator == "vtrace"
        with self.backend.without_gradient():
            fetches = ("critic.value", "chance.log_prob") if off_policy else ("critic.value",)
            feeds = {port: batch[port] for port in ("observation", "mask", "action")}
            found = self.bound.run(fetches, feeds)
            last = self.bound.run(("critic.value",), {"observation": batch["last_observation"]})["critic.value"]
            log_prob = found["chance.log_prob"] if off_policy else behaviour
            trajectories = {
                "rewards": batch["reward"].reshape(shape),
                "ends": batch["done"].reshape(shape),
                "values": found["critic.value"].reshape(shape),
                "last": last,
                "log_probs": log_prob.reshape(shape),
                "behaviours": behaviour.reshape(shape),
            }
            estimate = self.bound.run(("estimate.advantage", "estimate.target"), trajectories)
            advantage = estimate["estimate.advantage"].reshape(-1)
            if self.config.normalise:
                advantage = self.bound.run(("normalise.advantage",), {"advantage": advantage})["normalise.advantage"]
        return {
            "advantage": advantage,
            "target": estimate["estimate.target"].reshape(-1),
            "old": found["critic.value"],
        }

    def _epoch(
        self, batch: Batch, rate: float, weight: float, rng: np.random.Generator, figures: list[tuple[Array, Array]]
    ) -> bool:
        """Go over the examples once; return whether the policy is still near that of the rollout."""
        for examples in self._minibatches(batch, rng):
            found, gradient = self._gradient(examples, weight)
            self._step(gradient, rate)
            figures.append((found["loss.loss"].mean(), found["chance.entropy"].mean()))
            stop = self.config.stop
            if stop is not None and float(found["surrogate.divergence"].mean()) > PATIENCE * stop:
                return False
        return True

    def _minibatches(self, batch: Batch, rng: np.random.Generator) -> list[Batch]:
        count, wanted = len(batch["reward"]), self.config.batch
        if wanted is None or wanted >= count:
            return [{port: batch[port] for port in graph.EXAMPLE}]
        xp, order = self.backend.xp, rng.permutation(count)
        places = [self.backend.asarray(part) for part in np.array_split(order, -(-count // wanted))]
        return [{port: xp.take(batch[port], place, axis=0) for port in graph.EXAMPLE} for place in places]

    def _gradient(self, examples: Batch, weight: float) -> tuple[Any, Array]:
        feeds = {**examples, "entropy_weight": weight}
        return self.bound.gradient("loss.loss", FETCHES, feeds)

    def _step(self, gradient: Array, rate: float) -> None:
        online = self.bound.stores["online"]
        self.updates += 1
        feeds = {
            "parameters": online.flat,
            "gradient": gradient,
            "first": self.first,
            "second": self.second,
            "count": self.updates,
            "rate": rate * min(1.0, self.updates / max(self.config.optimiser.ramp, 1)),
        }
        found = self.bound.run(("optimise.parameters", "optimise.first", "optimise.second"), feeds)
        self.first, self.second = found["optimise.first"], found["optimise.second"]
        self.backend.assign(online, found["optimise.parameters"])

    def _averaged(self, progress: float) -> None:
        if not self.config.average or progress < self.config.average_from:
            return
        share = self.config.average if self._averaging else 1.0
        feeds = {"parameters": self.bound.stores["online"].flat, "target_parameters": self.average, "share": share}
        self.average = self.bound.run(("synchronise.target",), feeds)["synchronise.target"]
        self._averaging = True

    def _exported(self) -> Array:
        return self.average if self._averaging else self.bound.stores["online"].flat

    def gradient(self, progress: float, rng: np.random.Generator) -> tuple[NDArray[np.float32], LearnStats] | None:
        """The gradient [P] of one pass over a full rollout, which is then forgotten; None while it is not full."""
        del rng
        if not self.rollout.full:
            return None
        batch = self._taken()
        batch.update(self._estimated(batch))
        weight = float(self.entropy.epsilon(progress, 1)[0])
        found, gradient = self._gradient({port: batch[port] for port in graph.EXAMPLE}, weight)
        figures = [float(found[name].mean()) for name in ("loss.loss", "chance.entropy")]
        rate = learning_rate(self.config.optimiser, progress)
        return self.backend.to_numpy(gradient), LearnStats(1, figures[0], rate, figures[1])

    def apply(self, gradient: NDArray[np.float32], progress: float) -> None:
        """Take one step of the optimiser along a gradient [P]."""
        self._step(self.backend.asarray(gradient), learning_rate(self.config.optimiser, progress))
        self._averaged(progress)

    def forget(self) -> None:
        """Drop the slabs of the rollout so far."""
        self.rollout.clear()

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters, moments, average; with `memory` the rollout so far."""
        host = self.backend.to_numpy
        arrays = {"online": host(self.bound.stores["online"].flat).copy()}
        arrays.update(first=host(self.first), second=host(self.second), average=host(self.average))
        if memory:
            arrays.update({f"rollout.{name}": value for name, value in self.rollout.state().items()})
        return arrays, {"updates": self.updates, "averaging": self._averaging}

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""
        give = self.backend.asarray
        self.backend.assign(self.bound.stores["online"], give(arrays["online"].copy()))
        self.first, self.second, self.average = (give(arrays[name].copy()) for name in ("first", "second", "average"))
        self.updates, self._averaging = values["updates"], values["averaging"]
        if "rollout.filled" in arrays:
            self.rollout.restore(part(arrays, "rollout."))

    def parameters(self) -> NDArray[np.float32]:
        """Actor's and critic's, [P]."""
        return self.backend.to_numpy(self.bound.stores["online"].flat).copy()

    def load(self, parameters: NDArray[np.float32]) -> None:
        """Overwrite actor's and critic's."""
        self.backend.assign(self.bound.stores["online"], self.backend.asarray(parameters))

    def export(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """A `network` policy: values = advice + temperature · head, whose best is the likeliest action."""
        views = self.bound.stores["online"].cut(self.backend.to_numpy(self._exported()))
        arrays = {
            name.removeprefix(graph.POLICY): view for name, view in views.items() if name.startswith(graph.POLICY)
        }
        scale = np.float32(self.config.temperature)
        arrays = {name: view * scale if name.startswith("advantage.") else view.copy() for name, view in arrays.items()}
        network, used = self.config.network, self.advice if self.config.network.advice else None
        config = {
            "layers": list(network.layers),
            "activation": network.activation,
            "dueling": False,
            "advice": None if used is None else [used.start, used.stop],
        }
        return "network", config, arrays
