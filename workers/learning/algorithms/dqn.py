"""The value-based agent: DQN and its switches (double, dueling, n-step, priorities, quantiles, soft or hard target)."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import graph, sets
from workers.learning.algorithms.base import Acted, Actions, Experience, LearnStats, Masks, Observations
from workers.learning.algorithms.config import DQN, Optimiser
from workers.learning.algorithms.config import Foresight as Looking
from workers.learning.backends import Backend
from workers.learning.backends.base import flatten
from workers.learning.build import Bound, bind, complete, compose
from workers.learning.components.exploration import ApeX, Ladder, Linear, Schedule
from workers.learning.components.foresight import Taught
from workers.learning.components.n_step import NStep
from workers.learning.components.quantile import mean_of_quantiles, spread
from workers.learning.components.replay import Replay
from workers.learning.execution.checkpoint import part
from workers.learning.simulator import Foresight
from workers.learning.spaces import Space

SET = ("online", "target")
LADDER = 64  # environments over which the exploration that is told is averaged


def learning_rate(config: Optimiser, progress: float) -> float:
    """Hold, then fall along half a cosine to `rate · end`."""
    if progress <= config.hold:
        return config.rate
    share = min(1.0, (progress - config.hold) / max(1.0 - config.hold, 1e-9))
    return config.rate * (config.end + (1.0 - config.end) * 0.5 * (1.0 + math.cos(math.pi * share)))


def schedule(config: DQN) -> Schedule:
    """Return the ε-schedule of a config."""
    wanted = config.exploration
    if wanted.schedule == "softmax":
        return Ladder(wanted.start, wanted.end)
    return ApeX(wanted.start) if wanted.schedule == "apex" else Linear(wanted.start, wanted.end, wanted.fraction)


class ValueAgent:
    """A built agent: the bound graph, its optimiser's moments, and the running average that is exported."""

    def __init__(
        self,
        config: DQN,
        observation: Space,
        actions: spaces.Discrete,
        advice: slice | None,
        backend: Backend,
        rng: np.random.Generator,
    ) -> None:
        self.config, self.advice, self.actions = config, advice, int(actions.n)
        self.noise = self.actions if config.exploration.schedule == "softmax" else 2
        nodes = graph.nodes(config, actions, advice)
        completed = complete(compose(graph.INPUTS, nodes), graph.root_spaces(observation, actions, self.noise))
        self.bound: Bound = bind(completed, backend, rng)
        self.backend, self.schedule = backend, schedule(config)
        memories = {node.name: node.component for node in nodes if isinstance(node.component, Replay)}
        self.memory, self.demonstrations = memories["memory"], memories.get("demonstrations")
        self.taught = next((node.component for node in nodes if isinstance(node.component, Taught)), None)
        self.foresight = 0 if config.foresight is None else config.foresight.nodes
        self.n_step: NStep = next(node.component for node in nodes if isinstance(node.component, NStep))
        self.report = self.bound.report
        self.updates, self.slabs, self._averaging, self._foreseen = 0, 0, False, False
        self.taken: list[NDArray[np.float32]] | None = None  # who wants the gradients of all steps puts a list here
        zeros = np.zeros(self.bound.report.parameters, np.float32)
        self.first, self.second = backend.asarray(zeros.copy()), backend.asarray(zeros.copy())
        self.average = backend.asarray(zeros.copy())

    def act(self, observation: Observations, mask: Masks, progress: float, rng: np.random.Generator) -> Acted:
        """Explore on the online network: [B, D], [B, N] → [B]."""
        batch, give = len(observation), self.backend.asarray
        feeds = {
            "observation": give(observation),
            "mask": give(mask),
            "noise": give(rng.random((batch, self.noise), np.float32)),
            "epsilon": give(self.schedule.epsilon(progress, batch)),
        }
        with self.backend.without_gradient():
            action = self.bound.run(("explore.action",), feeds)["explore.action"]
        return Acted(self.backend.to_numpy(action), np.zeros(batch, np.float32))

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """Best legal action of the parameters that would be exported."""
        values = np.where(mask, self.values(observation, mask), -np.inf)
        return values.argmax(axis=1)

    def values(self, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Q of every action under the parameters that would be exported: [B, D], [B, N] → [B, N]."""
        exported = {"online": self.bound.stores["online"].cut(self._exported())}
        feeds = {"observation": self.backend.asarray(observation), "mask": self.backend.asarray(mask)}
        with self.backend.without_gradient():
            return self.backend.to_numpy(self.bound.run(("q.values",), feeds, exported)["q.values"])

    def remember(self, experience: Experience) -> None:
        """Through the n-step window into the replay memory; where every action was foreseen, one tells no more."""
        if self._foreseen:
            self._foreseen = False
            self.slabs += 1
        else:
            self.insert(self.collect(experience))

    def foresee(self, observation: Observations, mask: Masks, ahead: Foresight) -> None:
        """Take in what every action would lead to from [B, D], [B, N]; the target network tells what that is worth.

        Only for a config with foresight; an executor calls it before the slab's step.
        """
        if self.taught is None:
            raise ValueError("the config has no foresight")
        feeds = {
            "ahead_observation": self.backend.asarray(ahead.observation),
            "ahead_mask": self.backend.asarray(ahead.mask),
        }
        with self.backend.without_gradient():
            value = self.backend.to_numpy(self.bound.run(("best_ahead.value",), feeds)["best_ahead.value"])
        following = (ahead.weight * value.reshape(-1, *ahead.reward.shape)).sum(axis=0)
        targets = (ahead.reward + np.float32(self.config.gamma) * following).T
        self.taught.insert({"observation": observation, "mask": mask, "targets": targets})
        self._foreseen = True

    def collect(self, experience: Experience) -> dict[str, NDArray[Any]]:
        """Push a slab [B] through the n-step window; return the transitions that are complete, [B] or none yet."""
        return dict(self.n_step.run(None, {}, experience._asdict()))

    def errors(self, transitions: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """How wrong the online network is about transitions, by its own estimate of what follows: [B] → [B]."""
        feeds = {f"memory.{name}": self.backend.asarray(value) for name, value in transitions.items()}
        feeds["memory.weight"] = self.backend.asarray(np.ones(len(transitions["reward"]), np.float32))
        with self.backend.without_gradient():
            found = self.bound.run(("loss.error",), feeds, {"target": self.bound.stores["online"].views})
        return self.backend.to_numpy(found["loss.error"])

    def insert(self, transitions: Mapping[str, NDArray[Any]], errors: NDArray[np.float32] | None = None) -> None:
        """Put a slab's transitions into the replay memory; `errors` [B] give them their first priorities."""
        places = self.memory.insert(transitions)
        if errors is not None:
            self.memory.reprioritise(places, errors)
        self.slabs += 1

    def learn(self, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Do the updates that are due after a slab."""
        del rng  # the memory draws from the generator it was built with, which is the executor's
        if self.taught is not None and self.config.foresight is not None and self.taught.size:
            return self._learn_taught(self.taught, self.config.foresight, progress)
        if self.memory.size < min(self.config.memory.warm_up, self.config.memory.capacity) or (
            self.slabs % self.config.slabs_per_update
        ):
            return None
        loss, rate = 0.0, learning_rate(self.config.optimiser, progress)
        shown = 0 if self.config.imitation is None else round(self.config.batch * self.config.imitation.share)
        for _ in range(self.config.updates_per_slab):
            loss += self._update(rate, progress, shown)
        explored = float(self.schedule.epsilon(progress, LADDER).mean())
        return LearnStats(self.config.updates_per_slab, loss / self.config.updates_per_slab, rate, explored)

    def _learn_taught(self, taught: Taught, wanted: Looking, progress: float) -> LearnStats | None:
        """The updates after a slab whose actions were all foreseen; of `imitation`, its share are of demonstrations."""
        if taught.size < min(wanted.batch, taught.capacity):
            return None
        loss, rate = 0.0, learning_rate(self.config.optimiser, progress)
        shown = 0.0 if self.config.imitation is None else self.config.imitation.share
        for count in range(wanted.updates):
            if int((count + 1) * shown) > int(count * shown):
                self._update(rate, progress, self.config.batch)
                continue
            feeds = {
                f"taught.{name}": self.backend.asarray(value) for name, value in taught.sample(wanted.batch).items()
            }
            found, gradient = self.bound.gradient("taught_loss.loss", ("taught_loss.loss",), feeds)
            self._along(gradient, rate, progress)
            loss += float(found["taught_loss.loss"].mean())
        explored = float(self.schedule.epsilon(progress, LADDER).mean())
        return LearnStats(wanted.updates, loss / wanted.updates, rate, explored)

    def imitate(self, slabs: Iterable[Experience], rng: np.random.Generator) -> LearnStats:
        """Keep what an expert did, and learn from it alone for as many updates as the config says.

        What is left of the window at the end is not used. Raises ValueError where the config has no imitation, or
        nothing was shown.
        """
        wanted, kept = self.config.imitation, self.demonstrations
        if wanted is None or kept is None:
            raise ValueError("the config has no imitation: demonstrations have no place in this agent")
        window = NStep(self.config.n_step, self.config.gamma)
        window.allocate(self.n_step.spaces, rng)
        for slab in slabs:
            shown = window.run(None, {}, slab._asdict())
            kept.insert({port: value[: kept.capacity - kept.size] for port, value in shown.items()})
        if not kept.size:
            raise ValueError(f"nothing was shown: {self.config.n_step} slabs make the first transitions")
        rate = self.config.optimiser.rate
        losses = [self._update(rate, 0.0, self.config.batch) for _ in range(wanted.updates)]
        return LearnStats(wanted.updates, float(np.mean(losses)) if losses else 0.0, rate, 0.0)

    def _update(self, rate: float, progress: float, shown: int) -> float:
        """One step along the gradient of a batch of which `shown` examples are demonstrations."""
        feeds, places = self._batch(min(shown, self.config.batch))
        with self.backend.without_gradient():
            feeds.update(self.bound.run(("target.target",), feeds))
        loss = "loss.loss" if self.config.imitation is None else "joined.loss"
        found, gradient = self.bound.gradient(loss, (loss, "loss.error"), feeds)
        self.memory.reprioritise(places, self.backend.to_numpy(found["loss.error"])[: len(places)])
        self._along(gradient, rate, progress)
        return float(found[loss].mean())

    def _along(self, gradient: Any, rate: float, progress: float) -> None:
        if self.taken is not None:
            self.taken.append(self.backend.to_numpy(gradient))
        self.updates += 1
        self._step(gradient, rate * min(1.0, self.updates / max(self.config.optimiser.ramp, 1)))
        self._synchronise(progress)

    def _batch(self, shown: int) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Own experience first, then `shown` demonstrations; and where the former stand."""
        own, give = self.config.batch - shown, self.backend.asarray
        batch, places = self.memory.sample(own) if own else ({}, np.zeros(0, np.int64))
        if self.demonstrations is None:
            return {f"memory.{name}": give(value) for name, value in batch.items()}, places
        extra, _ = self.demonstrations.sample(shown)
        joined = {port: np.concatenate([batch[port], extra[port]]) for port in batch} if own else extra
        feeds = {f"memory.{name}": give(value) for name, value in joined.items()}
        feeds["expert"] = give((np.arange(self.config.batch) >= own).astype(np.float32))
        return feeds, places

    def _step(self, gradient: Any, rate: float) -> None:
        online = self.bound.stores["online"]
        feeds = {
            "parameters": online.flat,
            "gradient": gradient,
            "first": self.first,
            "second": self.second,
            "count": self.updates,
            "rate": rate,
        }
        found = self.bound.run(("optimise.parameters", "optimise.first", "optimise.second"), feeds)
        self.first, self.second = found["optimise.first"], found["optimise.second"]
        self.backend.assign(online, found["optimise.parameters"])

    def _synchronise(self, progress: float) -> None:
        online = self.bound.stores["online"].flat
        if self.updates % self.config.target_every == 0:
            target = self.bound.stores["target"]
            self.backend.assign(target, self._blend(online, target.flat, self.config.target_share))
        if self.config.average and progress >= self.config.average_from:
            self.average = self._blend(online, self.average, self.config.average if self._averaging else 1.0)
            self._averaging = True

    def _blend(self, online: Any, target: Any, share: float) -> Any:
        feeds = {"parameters": online, "target_parameters": target, "share": share}
        return self.bound.run(("synchronise.target",), feeds)["synchronise.target"]

    def _exported(self) -> Any:
        return self.average if self._averaging else self.bound.stores["online"].flat

    def forget(self) -> None:
        """Empty the replay memory and the n-step window."""
        self.memory.clear()
        self.n_step.window.clear()
        if self.taught is not None:
            self.taught.clear()

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters, moments, average; with `memory` the replay and the n-step window."""
        host = self.backend.to_numpy
        arrays = {name: host(self.bound.stores[name].flat).copy() for name in SET}
        arrays.update(first=host(self.first), second=host(self.second), average=host(self.average))
        if memory:
            arrays.update({f"memory.{name}": value for name, value in self.memory.state().items()})
            arrays.update({f"n_step.{name}": value for name, value in self.n_step.state().items()})
            if self.taught is not None:
                arrays.update({f"taught.{name}": value for name, value in self.taught.state().items()})
        if self.demonstrations is not None:  # they can't be gathered anew, so they always go along
            arrays.update({f"demonstrations.{name}": value for name, value in self.demonstrations.state().items()})
        return arrays, {"updates": self.updates, "slabs": self.slabs, "averaging": self._averaging}

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""
        give = self.backend.asarray
        for name in SET:
            self.backend.assign(self.bound.stores[name], give(arrays[name].copy()))
        self.first, self.second, self.average = (give(arrays[name].copy()) for name in ("first", "second", "average"))
        self.updates, self.slabs, self._averaging = values["updates"], values["slabs"], values["averaging"]
        if "memory.position" in arrays:
            self.memory.restore(part(arrays, "memory."))
            self.n_step.restore(part(arrays, "n_step."))
            if self.taught is not None:
                self.taught.restore(part(arrays, "taught."))
        if self.demonstrations is not None:
            self.demonstrations.restore(part(arrays, "demonstrations."))

    def apply(self, gradient: NDArray[np.float32], progress: float) -> None:
        """Take one step along a gradient [P] that was computed elsewhere, as an update of its own would."""
        self._along(self.backend.asarray(gradient), learning_rate(self.config.optimiser, progress), progress)

    def parameters(self) -> NDArray[np.float32]:
        """The online network's, [P]."""
        return self.backend.to_numpy(self.bound.stores["online"].flat).copy()

    def load(self, parameters: NDArray[np.float32]) -> None:
        """Overwrite the online network's."""
        self.backend.assign(self.bound.stores["online"], self.backend.asarray(parameters))

    def export(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """A `network` policy: its config, and its layers' arrays by name; of quantiles their mean, which is linear."""
        views = self.bound.stores["online"].cut(self.backend.to_numpy(self._exported()))
        if self.config.quantiles:
            return "network", self._described(), mean_of_quantiles(views, self.config.quantiles)
        kind = "network" if self.config.network.scorer is None else "scorer"
        return kind, self._described(), {name: view.copy() for name, view in views.items()}

    def _described(self) -> dict[str, Any]:
        used, network = self.advice if self.config.network.advice else None, self.config.network
        if network.scorer is not None:
            return sets.described(network.scorer, network, self.advice)
        return {
            "layers": list(network.layers),
            "activation": network.activation,
            "dueling": network.dueling,
            "advice": None if used is None else [used.start, used.stop],
        }

    def start_from(self, arrays: Mapping[str, NDArray[Any]], config: Mapping[str, Any] | None = None) -> None:
        """Go on from a published network: its arrays become the online and the target network, moments start anew.

        Args:
            arrays: as `export` gives them; quantiles all start at the mean.
            config: the policy's, to be compared with this agent's.

        Raises:
            ValueError: it is another network than this agent's; says in what.
        """
        own = self._described()
        other = {name: config[name] for name in own if name in config and config[name] != own[name]} if config else {}
        if other:
            raise ValueError(f"the published network has {other}, this agent { {name: own[name] for name in other} }")
        given = spread(arrays, self.config.quantiles) if self.config.quantiles else arrays
        views = self.bound.stores["online"].views
        wanted = {name: tuple(view.shape) for name, view in views.items()}
        found = {name: np.shape(value) for name, value in given.items()}
        if wanted != found:
            wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
            told = ", ".join(f"{name}: {found.get(name, 'none')} for {wanted.get(name, 'none')}" for name in wrong)
            raise ValueError(f"the published network does not fit this agent's spaces and layers ({told})")
        flat = self.backend.asarray(flatten({name: given[name] for name in views}))
        for name in SET:
            self.backend.assign(self.bound.stores[name], flat)
        self.first, self.second = (self.backend.asarray(np.zeros(len(flat), np.float32)) for _ in range(2))
        self.updates, self._averaging = 0, False
