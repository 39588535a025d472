"""The value-based agent in a compiled loop.

The replay memory is a ring of slabs in the order of time: the successor of a transition is the observation of the slab
n steps on, so it is not stored twice, and the n-step return is made when it is drawn.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms.config import DQN
from workers.learning.algorithms.dqn import ValueAgent, learning_rate
from workers.learning.backends import get_backend
from workers.learning.backends.base import Array
from workers.learning.backends.loop import Draws, at, choose, put, repeat, rows
from workers.learning.execution.base import ExecutionError
from workers.learning.execution.loops import Choice, Stats, Told, Walk, Walking, learned, nothing, over, settle


class Learned(NamedTuple):
    """Flat vectors [P], and counters."""

    online: Array
    target: Array
    first: Array
    second: Array
    average: Array
    updates: Array
    averaging: Array


class Ring(NamedTuple):
    """The last slabs, [K, B, …] each; `slabs` counts them since the ring was empty, `luck` draws from it."""

    observation: Array
    mask: Array
    action: Array
    reward: Array
    done: Array
    slabs: Array
    luck: Array


class ValueFamily:
    """DQN with its switches, but for prioritised replay; see `Family`."""

    slabs = 1

    def __init__(
        self,
        config: DQN,
        observation: spaces.Box,
        actions: spaces.Discrete,
        advice: slice | None,
        batch: int,
        rng: np.random.Generator,
    ) -> None:
        if config.memory.prioritised:
            raise ExecutionError("prioritised replay is not compiled; use the torch backend")
        if config.imitation is not None or config.foresight is not None:
            raise ExecutionError("learning from demonstrations or foresight is not compiled; use the torch backend")
        memory = msgspec.structs.replace(config.memory, capacity=1)  # the loop brings its own
        backend = get_backend("jax", "cpu" if config.place.device == "auto" else config.place.device)
        self.config, self.batch = config, batch
        self.agent = ValueAgent(
            msgspec.structs.replace(config, memory=memory), observation, actions, advice, backend, rng
        )
        self.xp, self.bound = backend.xp, self.agent.bound
        self.kept = max(1, config.memory.capacity // batch)
        self._others: dict[str, Any] = {}
        self.warm = min(config.memory.warm_up, self.kept * batch)

    def told(self, progress: NDArray[np.float64], batch: int) -> Told:
        """Rates and ε (or temperatures, [K, B]) by the agent's schedules."""
        rates = [learning_rate(self.config.optimiser, float(share)) for share in progress]
        explored = [self.agent.schedule.epsilon(float(share), batch) for share in progress]
        return Told(progress.astype(np.float32), np.array(rates, np.float32), np.array(explored, np.float32))

    def learner(self) -> Learned:
        """From the agent."""
        arrays, values = self.agent.state(memory=False)
        self._others = values
        return learned(Learned, arrays, values)

    def settle(self, learner: Learned) -> None:
        """To the agent."""
        settle(self.agent, learner, self._others)

    def memory(self, observation: Array, mask: Array, luck: Array) -> Ring:
        """An empty ring; the first observation stands in it."""
        xp, slots = self.xp, self.kept + self.config.n_step

        def storage(example: Array, dtype: Any) -> Array:
            return xp.zeros((slots, *example.shape), dtype)

        numbers = xp.zeros(self.batch)
        return Ring(
            put(storage(observation, observation.dtype), 0, observation),
            put(storage(mask, mask.dtype), 0, mask),
            storage(numbers, xp.int32),
            storage(numbers, xp.float32),
            storage(numbers, xp.bool_),
            xp.zeros((), xp.int32),
            luck,
        )

    def round(
        self, learner: Learned, memory: Ring, walking: Walking, told: Told, walk: Walk
    ) -> tuple[Learned, Ring, Walking, Stats]:
        """Act, remember, learn."""
        views = self._views(learner)

        def explore(observation: Array, mask: Array, noise: Array) -> Choice:
            feeds = {"observation": observation, "mask": mask, "noise": noise, "epsilon": told.exploration}
            action = self.bound.run(("explore.action",), feeds, views)["explore.action"]
            return Choice(action, self.xp.zeros_like(told.exploration))

        walking, slab = walk(walking, explore, self.agent.noise)
        memory = self._pushed(memory, slab, walking)
        size = self.xp.clip(memory.slabs - self.config.n_step + 1, 0, self.kept)
        due = (size * self.batch >= self.warm) & (memory.slabs % self.config.slabs_per_update == 0)
        draws = Draws(memory.luck, 2 * self.config.updates_per_slab)
        memory = memory._replace(luck=draws.left)
        drawn = [self._drawn(memory, size, draws) for _ in range(self.config.updates_per_slab)]
        batches = {port: self.xp.stack([batch[port] for batch in drawn]) for port in drawn[0]}

        def learn(carry: tuple[Learned, Stats]) -> tuple[Learned, Stats]:
            def update(index: Array, inner: tuple[Learned, Array]) -> tuple[Learned, Array]:
                feeds = {port: at(values, index) for port, values in batches.items()}
                found, loss = self.updated(inner[0], feeds, told.rate, told.progress)
                return found, inner[1] + loss

            count = self.config.updates_per_slab
            found, loss = repeat(count, update, (carry[0], self.xp.zeros(())))
            return found, Stats(loss / count, self.xp.mean(told.exploration), *self.xp.asarray([1, count]))

        learner, stats = choose(due, learn, (learner, nothing(self.xp)))
        return learner, memory, walking, stats

    def updated(self, learner: Learned, feeds: dict[str, Array], rate: Array, progress: Array) -> tuple[Learned, Array]:
        """One update from a batch of transitions, by wire; also its loss."""
        config, views = self.config, self._views(learner)
        feeds = {**feeds, **self.bound.run(("target.target",), feeds, views)}
        bound = over(self.bound, {"online": learner.online, "target": learner.target})
        found, gradient = bound.gradient("loss.loss", ("loss.loss",), feeds)
        updates = learner.updates + 1
        ramp = self.xp.minimum(1.0, updates / max(config.optimiser.ramp, 1))
        stepped = self.bound.run(
            ("optimise.parameters", "optimise.first", "optimise.second"),
            {
                "parameters": learner.online,
                "gradient": gradient,
                "first": learner.first,
                "second": learner.second,
                "count": updates,
                "rate": rate * ramp,
            },
        )
        online, first, second = (stepped[f"optimise.{name}"] for name in ("parameters", "first", "second"))
        learner = learner._replace(online=online, first=first, second=second, updates=updates)
        return self._synchronised(learner, progress), self.xp.mean(found["loss.loss"])

    def _synchronised(self, learner: Learned, progress: Array) -> Learned:
        config, xp = self.config, self.xp
        share = xp.where(learner.updates % config.target_every == 0, config.target_share, 0.0)
        learner = learner._replace(target=self._blend(learner.online, learner.target, share))
        if not config.average:
            return learner
        averaging = progress >= config.average_from
        weight = xp.where(averaging, xp.where(learner.averaging, config.average, 1.0), 0.0)
        average = self._blend(learner.online, learner.average, weight)
        return learner._replace(average=average, averaging=learner.averaging | averaging)

    def _blend(self, online: Array, target: Array, share: Array) -> Array:
        feeds = {"parameters": online, "target_parameters": target, "share": share}
        return self.bound.run(("synchronise.target",), feeds)["synchronise.target"]

    def _views(self, learner: Learned) -> dict[str, Any]:
        return {name: self.bound.stores[name].cut(getattr(learner, name)) for name in ("online", "target")}

    def _pushed(self, ring: Ring, slab: Any, walking: Walking) -> Ring:
        """A slab at the ring's head, and where it led to after it."""
        here, slots = ring.slabs % len(ring.reward), len(ring.reward)
        after = (ring.slabs + 1) % slots
        return ring._replace(
            observation=put(ring.observation, after, walking.observation),
            mask=put(ring.mask, after, walking.mask),
            action=put(ring.action, here, slab.action),
            reward=put(ring.reward, here, slab.reward),
            done=put(ring.done, here, slab.done),
            slabs=ring.slabs + 1,
        )

    def _drawn(self, ring: Ring, size: Array, draws: Draws) -> dict[str, Array]:
        """A batch of n-step transitions, drawn uniformly from the `size` slabs that are complete."""
        xp, config, slots = self.xp, self.config, len(ring.reward)
        newest = ring.slabs - config.n_step
        slab = newest - draws.below(xp.maximum(size, 1), config.batch)
        which = draws.below(xp.asarray(self.batch), config.batch)

        def place(step: int) -> Array:
            return (slab + step) % slots * self.batch + which

        def read(values: Array, step: int) -> Array:
            return rows(values.reshape(-1, *values.shape[2:]), place(step))

        total, discount = xp.zeros(config.batch), xp.ones(config.batch)
        for step in reversed(range(config.n_step)):
            alive = config.gamma * (1.0 - read(ring.done, step).astype(xp.float32))
            total, discount = read(ring.reward, step) + alive * total, alive * discount
        return {
            "memory.observation": read(ring.observation, 0),
            "memory.mask": read(ring.mask, 0),
            "memory.action": read(ring.action, 0),
            "memory.reward": total,
            "memory.discount": discount,
            "memory.next_observation": read(ring.observation, config.n_step),
            "memory.next_mask": read(ring.mask, config.n_step),
            "memory.weight": xp.ones(config.batch),
        }
