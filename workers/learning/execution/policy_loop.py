"""The actor-critic agent in a compiled loop: a round is a rollout, and the epochs over it."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import actor_graph as graph
from workers.learning.algorithms.actor_critic import PATIENCE, ActorCriticAgent
from workers.learning.algorithms.config import ActorCritic
from workers.learning.algorithms.dqn import learning_rate
from workers.learning.backends import get_backend
from workers.learning.backends.base import Array
from workers.learning.backends.loop import Draws, at, choose, gather, repeat, rows
from workers.learning.execution.base import ExecutionError
from workers.learning.execution.loops import (
    Choice,
    Luck,
    Slab,
    Stats,
    Told,
    Walk,
    Walking,
    learned,
    nothing,
    over,
    settle,
)

Batch = dict[str, Array]
FETCHES = ("loss.loss", "surrogate.divergence", "chance.entropy")


class Learned(NamedTuple):
    """Flat vectors [P], and counters."""

    online: Array
    first: Array
    second: Array
    average: Array
    updates: Array
    averaging: Array


class Going(NamedTuple):
    """What goes from minibatch to minibatch: `on` while the policy is still near that of the rollout."""

    learner: Learned
    on: Array
    stats: Stats


class PolicyFamily:
    """A2C, PPO and V-trace; see `Family`."""

    def __init__(
        self,
        config: ActorCritic,
        observation: spaces.Box,
        actions: spaces.Discrete,
        advice: slice | None,
        batch: int,
        rng: np.random.Generator,
    ) -> None:
        if getattr(config, "recurrent", None):
            raise ExecutionError("a recurrent core is not compiled; use the torch backend")
        backend = get_backend("jax", "cpu" if config.place.device == "auto" else config.place.device)
        self.config, self.batch, self.slabs = config, batch, config.rollout
        self.agent = ActorCriticAgent(config, observation, actions, advice, backend, rng)
        self.xp, self.bound = backend.xp, self.agent.bound
        self.examples = batch * config.rollout
        self.parts = -(-self.examples // min(config.batch or self.examples, self.examples))
        self._others: dict[str, Any] = {}

    def told(self, progress: NDArray[np.float64], batch: int) -> Told:
        """Rates, and the entropy's weight, by the agent's schedules."""
        del batch
        rates = [learning_rate(self.config.optimiser, float(share)) for share in progress]
        weights = [float(self.agent.entropy.epsilon(float(share), 1)[0]) for share in progress]
        return Told(progress.astype(np.float32), np.array(rates, np.float32), np.array(weights, np.float32))

    def learner(self) -> Learned:
        """From the agent."""
        arrays, values = self.agent.state(memory=False)
        self._others = values
        return learned(Learned, arrays, values)

    def settle(self, learner: Learned) -> None:
        """To the agent."""
        settle(self.agent, learner, self._others)

    def memory(self, observation: Array, mask: Array, luck: Array) -> Luck:
        """Nothing."""
        del observation, mask
        return Luck(luck)

    def round(
        self, learner: Learned, memory: Luck, walking: Walking, told: Told, walk: Walk
    ) -> tuple[Learned, Luck, Walking, Stats]:
        """Roll out, estimate, go over it."""
        views = {"online": self.bound.stores["online"].cut(learner.online)}

        def draw(observation: Array, mask: Array, noise: Array) -> Choice:
            feeds = {"observation": observation, "mask": mask, "noise": noise}
            found = self.bound.run(("draw.action", "draw.log_prob"), feeds, views)
            return Choice(found["draw.action"], found["draw.log_prob"])

        walking, slabs = gather(self.slabs, lambda standing: walk(standing, draw, self.agent.actions), walking)
        learner, stats, luck = self.learned(learner, slabs, walking, told, memory.luck)
        return self._averaged(learner, told.progress), Luck(luck), walking, stats

    def learned(
        self, learner: Learned, slabs: Slab, walking: Walking, told: Told, luck: Array
    ) -> tuple[Learned, Stats, Array]:
        """Learn from a rollout, [T, B, …], that ended where the environments stand now; also the generator's state."""
        again = self.config.estimator == "vtrace"
        batch = {port: self._flat(value) for port, value in slabs._asdict().items()}
        batch |= {} if again else self._estimated(learner, batch, walking)

        def epoch(_: Array, carry: tuple[Going, Array]) -> tuple[Going, Array]:
            going, draws = carry[0], Draws(carry[1], 1)
            estimated = self._estimated(going.learner, batch, walking) if again else {}
            order = draws.order(self.examples) if self.parts > 1 else None
            return self._epoch(going, {**batch, **estimated}, order, told), draws.left

        going = Going(learner, self.xp.asarray(True), nothing(self.xp))
        going, luck = repeat(self.config.epochs, epoch, (going, luck))
        stats, count = going.stats, self.xp.maximum(going.stats.updates, 1)
        one = self.xp.asarray(1, dtype=self.xp.int32)
        return going.learner, Stats(stats.loss / count, stats.explored / count, one, stats.updates), luck

    def _flat(self, slabs: Array) -> Array:
        """[T, B, …] → [B·T, …], trajectory by trajectory."""
        turned = self.xp.moveaxis(slabs, 0, 1)
        return turned.reshape(self.examples, *turned.shape[2:])

    def _estimated(self, learner: Learned, batch: Batch, walking: Walking) -> Batch:
        """Advantages and targets of the examples, [B·T]; `old` are the values now."""
        views = {"online": self.bound.stores["online"].cut(learner.online)}
        vtrace, shape = self.config.estimator == "vtrace", (self.batch, self.slabs)
        fetches = ("critic.value", "chance.log_prob") if vtrace else ("critic.value",)
        found = self.bound.run(fetches, {port: batch[port] for port in ("observation", "mask", "action")}, views)
        following = {"observation": walking.observation, "mask": walking.mask}
        trajectories = {
            "rewards": batch["reward"].reshape(shape),
            "ends": batch["done"].reshape(shape),
            "values": found["critic.value"].reshape(shape),
            "last": self.bound.run(("critic.value",), following, views)["critic.value"],
            "log_probs": (found["chance.log_prob"] if vtrace else batch["log_prob"]).reshape(shape),
            "behaviours": batch["log_prob"].reshape(shape),
        }
        estimate = self.bound.run(("estimate.advantage", "estimate.target"), trajectories)
        advantage = estimate["estimate.advantage"].reshape(-1)
        if self.config.normalise:
            advantage = self.bound.run(("normalise.advantage",), {"advantage": advantage})["normalise.advantage"]
        target = estimate["estimate.target"].reshape(-1)
        return {"advantage": advantage, "target": target, "old": found["critic.value"]}

    def _epoch(self, going: Going, batch: Batch, order: Array | None, told: Told) -> Going:
        """Go over the examples once, in equal minibatches (what does not fill the last one waits for luck)."""
        examples = {port: batch[port] for port in graph.EXAMPLE}
        if order is None:
            return choose(going.on, lambda kept: self.updated(kept, examples, told), going)
        size = self.examples // self.parts
        places = order[: size * self.parts].reshape(self.parts, size)

        def minibatch(index: Array, carry: Going) -> Going:
            chosen = {port: rows(value, at(places, index)) for port, value in examples.items()}
            return choose(carry.on, lambda kept: self.updated(kept, chosen, told), carry)

        return repeat(self.parts, minibatch, going)

    def updated(self, going: Going, examples: Batch, told: Told) -> Going:
        """One update from a minibatch."""
        learner, xp, config = going.learner, self.xp, self.config
        feeds = {**examples, "entropy_weight": told.exploration}
        found, gradient = over(self.bound, {"online": learner.online}).gradient("loss.loss", FETCHES, feeds)
        updates = learner.updates + 1
        stepped = self.bound.run(
            ("optimise.parameters", "optimise.first", "optimise.second"),
            {
                "parameters": learner.online,
                "gradient": gradient,
                "first": learner.first,
                "second": learner.second,
                "count": updates,
                "rate": told.rate * xp.minimum(1.0, updates / max(config.optimiser.ramp, 1)),
            },
        )
        online, first, second = (stepped[f"optimise.{name}"] for name in ("parameters", "first", "second"))
        learner = learner._replace(online=online, first=first, second=second, updates=updates)
        loss, moved, entropy = (xp.mean(found[name]) for name in FETCHES)
        so_far = going.stats
        stats = so_far._replace(loss=so_far.loss + loss, explored=so_far.explored + entropy, updates=so_far.updates + 1)
        return Going(learner, going.on if config.stop is None else moved <= PATIENCE * config.stop, stats)

    def _averaged(self, learner: Learned, progress: Array) -> Learned:
        config, xp = self.config, self.xp
        if not config.average:
            return learner
        averaging = progress >= config.average_from
        share = xp.where(averaging, xp.where(learner.averaging, config.average, 1.0), 0.0)
        feeds = {"parameters": learner.online, "target_parameters": learner.average, "share": share}
        average = self.bound.run(("synchronise.target",), feeds)["synchronise.target"]
        return learner._replace(average=average, averaging=learner.averaging | averaging)
