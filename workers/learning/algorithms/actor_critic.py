"""The actor-critic agent: A2C, A3C, PPO and V-trace by the switches of its config."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import actor_graph as graph
from workers.learning.algorithms import sets
from workers.learning.algorithms.base import Acted, Actions, Experience, LearnStats, Masks, Observations
from workers.learning.algorithms.config import ActorCritic
from workers.learning.algorithms.dqn import learning_rate
from workers.learning.algorithms.recollection import Glance, Recollection
from workers.learning.backends import Backend
from workers.learning.backends.base import Array, flatten
from workers.learning.build import Bound, bind, complete, compose
from workers.learning.components.exploration import Linear
from workers.learning.components.rollout import KEPT, Rollout
from workers.learning.execution.checkpoint import part
from workers.learning.spaces import Space

Batch = dict[str, Array]
HEAD = "advantage."
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
        completed = complete(compose(graph.inputs(config), nodes), graph.root_spaces(config, observation, actions))
        self.bound: Bound = bind(completed, backend, rng)
        self.report = self.bound.report
        self.rollout: Rollout = next(node.component for node in nodes if isinstance(node.component, Rollout))
        self.seen: Glance = (
            Recollection(backend, config.rollout, config.recurrent)
            if config.recurrent
            else Glance(backend, config.rollout)
        )
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
        feeds = {**self.seen.now(observation), "mask": give(mask), "noise": give(noise)}
        with self.backend.without_gradient():
            found = self.bound.run(("draw.action", "draw.log_prob", *self.seen.fetches), feeds)
        self.seen.acted(found)
        return Acted(self.backend.to_numpy(found["draw.action"]), self.backend.to_numpy(found["draw.log_prob"]))

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """The likeliest legal action under the parameters that would be exported."""
        return np.where(mask, self.values(observation, mask), -np.inf).argmax(axis=1)

    def values(self, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Preferences in the unit of the reward, as exported: temperature · logits, [B, D], [B, N] → [B, N].

        A recurrent agent is asked as at the begin of an episode.
        """
        exported = {"online": self.bound.stores["online"].cut(self._exported())}
        feeds = {**self.seen.alone(observation), "mask": self.backend.asarray(mask)}
        with self.backend.without_gradient():
            logits = self.bound.run(("policy.logits",), feeds, exported)["policy.logits"]
        return self.backend.to_numpy(logits) * np.float32(self.config.temperature)

    def remember(self, experience: Experience) -> None:
        """Append to the rollout; slabs must follow one another, all of the same environments."""
        self.rollout.push({**experience._asdict(), **self.seen.stepped(experience)})

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
        slabs, give = self.rollout.slabs, self.backend.asarray
        self.rollout.clear()
        flat = {port: give(slabs[port].reshape(-1, *slabs[port].shape[2:])) for port in KEPT}
        ends = {"last_observation": give(slabs["last_observation"]), "last_mask": give(slabs["last_mask"])}
        return {**flat, **ends, **self.seen.whole(slabs)}

    def _estimated(self, batch: Batch) -> Batch:
        """Advantages and targets of the examples, [B·T]; `old` are the values now."""
        shape, behaviour = (-1, self.config.rollout), batch["log_prob"]
        off_policy = self.config.estimator == "vtrace"
        with self.backend.without_gradient():
            fetches = ("critic.value", "chance.log_prob") if off_policy else ("critic.value",)
            given = {"mask": batch["mask"], "action": batch["action"]}
            found = self.bound.run(fetches, {**self.seen.feeds(batch), **given})
            following = {**self.seen.last(batch, self.bound), "mask": batch["last_mask"]}
            last = self.bound.run(("critic.value",), following)["critic.value"]
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
        for examples in self._minibatches(batch, self.config.batch, rng):
            found, gradient = self._gradient("loss.loss", examples, weight)
            self._step(gradient, rate)
            figures.append((found["loss.loss"].mean(), found["chance.entropy"].mean()))
            stop = self.config.stop
            if stop is not None and float(found["surrogate.divergence"].mean()) > PATIENCE * stop:
                return False
        return True

    def _minibatches(self, batch: Batch, wanted: int | None, rng: np.random.Generator) -> Iterator[Batch]:
        count = len(batch["reward"])
        if wanted is None or wanted >= count:
            yield batch
            return
        for places in self.seen.split(count, wanted, rng):
            yield self.seen.pick(batch, graph.EXAMPLE, places)

    def _gradient(self, loss: str, examples: Batch, weight: float) -> tuple[Any, Array]:
        feeds = {name: examples[name] for name in graph.EXAMPLE if name != "observation"}
        feeds = {**feeds, **self.seen.feeds(examples), "entropy_weight": weight}
        return self.bound.gradient(loss, (loss, "surrogate.divergence", "chance.entropy"), feeds)

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
        found, gradient = self._gradient("loss.loss", batch, weight)
        figures = [float(found[name].mean()) for name in ("loss.loss", "chance.entropy")]
        rate = learning_rate(self.config.optimiser, progress)
        return self.backend.to_numpy(gradient), LearnStats(1, figures[0], rate, figures[1])

    def apply(self, gradient: NDArray[np.float32], progress: float) -> None:
        """Take one step of the optimiser along a gradient [P]."""
        self._step(self.backend.asarray(gradient), learning_rate(self.config.optimiser, progress))
        self._averaged(progress)

    def imitate(self, slabs: Iterable[Experience], rng: np.random.Generator) -> LearnStats:
        """Clone an expert: make what it did likely, and learn what its states are worth (see `Cloning`).

        Whole rollouts are learned from; what is left at the end is not. Raises ValueError where nothing was shown.
        """
        wanted, shown = self.config.cloning, list(self._watched(slabs, rng))
        if not shown:
            raise ValueError(f"nothing was shown: {self.config.rollout} slabs make the first rollout")
        losses, entropies = [], []
        for _ in range(wanted.epochs):
            for batch in shown:
                batch.update(self._estimated(batch))
                for examples in self._minibatches(batch, wanted.batch, rng):
                    found, gradient = self._gradient("cloned.loss", examples, wanted.entropy)
                    self._step(gradient, wanted.rate)
                    losses.append(float(found["cloned.loss"].mean()))
                    entropies.append(float(found["chance.entropy"].mean()))
        return LearnStats(len(losses), float(np.mean(losses)), wanted.rate, float(np.mean(entropies)))

    def _watched(self, slabs: Iterable[Experience], rng: np.random.Generator) -> Iterator[Batch]:
        """The rollouts that slabs make up, as batches of their own."""
        self.rollout.clear()
        for slab in slabs:
            if self.config.recurrent:
                self.act(slab.observation, slab.mask, 0.0, rng)
            self.remember(slab)
            if self.rollout.full:
                yield self._taken()
                self.rollout.slabs = {}  # the batch may still look at these
        self.rollout.clear()

    def forget(self) -> None:
        """Drop the slabs of the rollout so far."""
        self.rollout.clear()

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Parameters, moments, average; with `memory` the rollout so far."""
        host = self.backend.to_numpy
        arrays = {"online": host(self.bound.stores["online"].flat).copy()}
        arrays.update(first=host(self.first), second=host(self.second), average=host(self.average))
        arrays.update({f"seen.{name}": value for name, value in self.seen.state().items()})
        if memory:
            arrays.update({f"rollout.{name}": value for name, value in self.rollout.state().items()})
        return arrays, {"updates": self.updates, "averaging": self._averaging}

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""
        give = self.backend.asarray
        self.backend.assign(self.bound.stores["online"], give(arrays["online"].copy()))
        self.first, self.second, self.average = (give(arrays[name].copy()) for name in ("first", "second", "average"))
        self.updates, self._averaging = values["updates"], values["averaging"]
        self.seen.restore(part(arrays, "seen."))
        if "rollout.filled" in arrays:
            self.rollout.restore(part(arrays, "rollout."))

    def parameters(self) -> NDArray[np.float32]:
        """Actor's and critic's, [P]."""
        return self.backend.to_numpy(self.bound.stores["online"].flat).copy()

    def load(self, parameters: NDArray[np.float32]) -> None:
        """Overwrite actor's and critic's."""
        self.backend.assign(self.bound.stores["online"], self.backend.asarray(parameters))

    def export(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """A `network` or `scorer` policy: values = advice + temperature · head, whose best is the likeliest action.

        Raises ValueError for a recurrent agent: what is served keeps nothing between decisions.
        """
        if self.config.recurrent:
            raise ValueError(
                "a recurrent agent can't be exported: it acts on what it has seen before, and what answers decisions "
                "keeps nothing between them"
            )
        views = self.bound.stores["online"].cut(self.backend.to_numpy(self._exported()))
        arrays = {
            name.removeprefix(graph.POLICY): view for name, view in views.items() if name.startswith(graph.POLICY)
        }
        scale = np.float32(self.config.temperature)
        arrays = {name: view * scale if name.startswith(HEAD) else view.copy() for name, view in arrays.items()}
        return *self._described(), arrays

    def _described(self) -> tuple[str, dict[str, Any]]:
        network = self.config.network
        if network.scorer is not None:
            return "scorer", sets.described(network.scorer, network, self.advice)
        used = self.advice if network.advice else None
        return "network", {
            "layers": list(network.layers),
            "activation": network.activation,
            "dueling": False,
            "advice": None if used is None else [used.start, used.stop],
        }

    def start_from(self, arrays: Mapping[str, NDArray[Any]], config: Mapping[str, Any] | None = None) -> None:
        """Go on from a published policy: its arrays become the actor's; the critic is not published, and starts anew.

        Args:
            arrays: as `export` gives them; a dueling head's `value.*` changes no choice, and is left out.
            config: the policy's, to be compared with this agent's.

        Raises:
            ValueError: it is another network than this agent's; says in what.
        """
        own = {name: value for name, value in self._described()[1].items() if name != "dueling"}
        other = {name: config[name] for name in own if name in config and config[name] != own[name]} if config else {}
        if other:
            raise ValueError(f"the published network has {other}, this agent { {name: own[name] for name in other} }")
        views = self.bound.stores["online"].views
        wanted = {name: tuple(view.shape) for name, view in views.items() if name.startswith(graph.POLICY)}
        given = {f"{graph.POLICY}{name}": value for name, value in arrays.items() if not name.startswith("value.")}
        found = {name: np.shape(value) for name, value in given.items()}
        if found != wanted:
            wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
            told = ", ".join(f"{name}: {found.get(name, 'none')} for {wanted.get(name, 'none')}" for name in wrong)
            raise ValueError(f"the published network does not fit this agent's spaces and layers ({told})")
        values = {name: self.backend.to_numpy(view) for name, view in views.items()}
        for name, value in given.items():
            head = name.startswith(f"{graph.POLICY}{HEAD}")
            values[name] = value / np.float32(self.config.temperature) if head else value
        self.backend.assign(self.bound.stores["online"], self.backend.asarray(flatten(values)))
