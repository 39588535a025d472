"""The compiled executor: simulator, agent and update in one program of the jax backend, chunk by chunk.

The host tells the program of a chunk what every round is to do (rates, exploration), hands it beginnings of episodes
drawn by the NumPy simulator, and gets back parameters and sums. Between chunks everything can go into a checkpoint; a
run that was resumed from it is bit-equal to one that was not (as far as no ceiling of seconds paces it).
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.backends import available
from workers.learning.backends.base import Array
from workers.learning.described_simulator import SimulatorSpec
from workers.learning.execution import checkpoint as blob
from workers.learning.execution.base import ExecutionError, Live, Paced, Plan

if "jax" not in available():
    raise ExecutionError("the compiled executor needs the extra 'jax': pip install 'steward[jax]'")

from workers.learning.backends.loop import Draws, Tree, at, leaves, luck, on_device, program, rebuilt, repeat
from workers.learning.compiled_simulator.base import CompiledSimulator
from workers.learning.execution.loops import Choice, Family, Slab, Stats, Told, Walking, nothing
from workers.learning.execution.policy_loop import PolicyFamily
from workers.learning.execution.value_loop import ValueFamily

FAMILIES: dict[type, Any] = {DQN: ValueFamily, ActorCritic: PolicyFamily}
ROUNDS = (2, 16)  # the least and the most episodes per environment that are drawn for one chunk


class Carried(NamedTuple):
    """Everything that goes from round to round."""

    learner: Tree
    memory: Tree
    walking: Walking
    stats: Stats


class Compiled(Paced):
    """Runs one agent on one simulator, both compiled.

    Args:
        config: the agent; value-based without priorities, or actor-critic.
        environment: the simulator.
        plan: length and pieces; chunks are whole rounds of the agent.
        seed: of everything that the learner draws.
        clock: seconds from any origin; only differences count. Compilation counts, in the first chunk.

    Raises:
        ExecutionError: the config is of another family, or wants what is not compiled.
        BuildError: the config does not fit the simulator's spaces.
    """

    def __init__(
        self,
        config: Config,
        environment: CompiledSimulator,
        plan: Plan,
        seed: int,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        if type(config) not in FAMILIES:
            raise ExecutionError(f"{type(config).__name__} is not compiled; known are DQN and ActorCritic")
        self.environment, self.plan, self.clock = environment, plan, clock
        spaces = environment.observation_space, environment.action_space, environment.advice
        rng = np.random.default_rng(seed)
        self.family: Family = FAMILIES[type(config)](_placed(config), *spaces, environment.batch, rng)
        self.agent = self.family.agent
        self.steps, self.updates, self.elapsed = 0, 0, 0.0
        self.live = Live()
        self._pace: float | None = None  # share of the training per second, as last seen
        self._constants = on_device(environment.constants())
        self._chunk = program(self._rounds, given_up=(3,))
        self._walking, self._memory = self._opened(seed)

    @property
    def slab(self) -> int:
        """Environment steps of one round."""
        return self.environment.batch * self.family.slabs

    def advance(self) -> Live:
        """Do one chunk; return its figures."""
        begun, started = self.elapsed, self.clock()
        if not self.plan.keep_memory:
            self._memory = self._emptied(self._walking, self._memory)
        told, count = self._told()
        xp = self.agent.backend.xp
        pool = on_device(self.environment.beginnings(self._drawn))
        walking = self._walking._replace(episodes=xp.zeros_like(self._walking.episodes))
        carried = Carried(self.family.learner(), self._memory, walking, nothing(xp))
        found: Carried = self._chunk(self._constants, pool, on_device(told), carried, count)
        self.family.settle(found.learner)
        self._memory = found.memory
        self.steps += count * self.slab
        self.elapsed = begun + self.clock() - started
        self.live = self._summed(found, count, self.elapsed - begun)
        return self.live

    @property
    def _drawn(self) -> int:
        """Episodes that are drawn per environment for a chunk; where more begin in it, they begin like the first."""
        slabs = -(-self.plan.chunk_steps // self.environment.batch)
        return int(np.clip(slabs // self.environment.usual + 1, *ROUNDS))

    def _told(self) -> tuple[Told, int]:
        """What every round of this chunk is to do, and how many rounds it has."""
        most = -(-self.plan.chunk_steps // self.slab)
        now, share = self.progress, self.slab / self.plan.steps
        if self.plan.seconds is not None and self._pace is not None:
            share = max(share, self._pace * self.slab)
        left = max(self.pause - now, 0.0) / share
        count = max(1, min(most, int(np.ceil(left - 1e-9))))
        progress = np.minimum(now + share * np.arange(most), 1.0)
        return self.family.told(progress, self.environment.batch), count

    def _summed(self, found: Carried, count: int, seconds: float) -> Live:
        """Take the walk's sums out of it, and tell them."""
        walking, stats = found.walking, found.stats
        ended, rounds = int(walking.ended), max(int(stats.rounds), 1)
        returned = float(walking.paid) / ended if ended else None
        xp = self.agent.backend.xp
        self._walking = walking._replace(paid=xp.zeros_like(walking.paid), ended=xp.zeros_like(walking.ended))
        learned = int(stats.updates)
        self.updates += learned
        if self.plan.seconds is not None:
            self._pace = seconds / self.plan.seconds / (count * self.slab)
        figures = [float(total) / rounds if learned else None for total in (stats.loss, stats.explored)]
        steps_per_second = count * self.slab / max(seconds, 1e-9)
        return Live(self.steps, returned, figures[0], self.updates, steps_per_second, figures[1])

    def _rounds(self, constants: Tree, pool: Array, told: Told, carried: Carried, count: Array) -> Carried:
        """The program of a chunk."""
        walk = partial(self._walk, constants, pool)

        def one(index: Array, carry: Carried) -> Carried:
            now = Told(*(at(values, index) for values in told))
            learner, memory, walking, stats = self.family.round(carry.learner, carry.memory, carry.walking, now, walk)
            return Carried(learner, memory, walking, Stats(*map(_add, carry.stats, stats)))

        return repeat(count, one, carried)

    def _walk(
        self,
        constants: Tree,
        pool: Array,
        walking: Walking,
        choose: Callable[[Array, Array, Array], Choice],
        noise: int,
    ) -> tuple[Walking, Slab]:
        """One step of all environments."""
        xp, batch = self.agent.backend.xp, self.environment.batch
        draws = Draws(walking.luck, 2)
        observation, mask = walking.observation, walking.mask
        choice = choose(observation, mask, draws.uniform(batch, noise))
        row = walking.episodes % len(pool) * batch + xp.arange(batch)
        beginning = pool.reshape(-1, pool.shape[-1])[row]
        normal = draws.normal(batch, self.environment.normals)
        world, seen, reward, done = self.environment.step(constants, walking.world, choice.action, normal, beginning)
        returns = walking.returns + reward
        walking = Walking(
            world,
            seen.observation,
            seen.mask,
            xp.where(done, 0.0, returns),
            walking.episodes + done,
            walking.paid + xp.sum(xp.where(done, returns, 0.0)),
            walking.ended + xp.sum(done),
            draws.left,
        )
        return walking, Slab(observation, mask, choice.action, reward, done, choice.log_prob)

    def _opened(self, seed: int) -> tuple[Walking, Tree]:
        """Environments at the beginning of their first episodes, and an empty memory."""
        begin, xp = program(self.environment.begin), self.agent.backend.xp
        world, seen = begin(self._constants, on_device(self.environment.beginnings(1)[0]))
        numbers, zero = xp.zeros(self.environment.batch), xp.zeros((), xp.int32)
        lucks = np.random.SeedSequence(seed).generate_state(2)
        counts = xp.zeros(self.environment.batch, xp.int32)
        walking = Walking(world, seen.observation, seen.mask, numbers, counts, xp.zeros(()), zero, luck(int(lucks[0])))
        return walking, self.family.memory(seen.observation, seen.mask, luck(int(lucks[1])))

    def _emptied(self, walking: Walking, memory: Tree) -> Tree:
        """The memory without what it remembers."""
        return self.family.memory(walking.observation, walking.mask, memory.luck)

    def checkpoint(self) -> bytes:
        """Return everything from which `restore` goes on bit-equal."""
        arrays, agent = self.agent.state(memory=False)
        found = {f"agent.{name}": value for name, value in arrays.items()}
        found |= {f"loop.{i:03}": value for i, value in enumerate(leaves(self._kept()))}
        values = {
            "agent": agent,
            "random": self.environment.random.bit_generator.state,
            "steps": self.steps,
            "updates": self.updates,
            "elapsed": self.elapsed,
            "pace": self._pace,
            "live": asdict(self.live),
        }
        generator, values["random"] = blob.split(values["random"], "random.")
        return blob.pack({**found, **generator}, values)

    def restore(self, data: bytes) -> None:
        """Go on from a checkpoint of the same config, simulator and plan; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        self.agent.restore(blob.part(arrays, "agent."), values["agent"])
        kept: list[NDArray[Any]] = [value for _, value in sorted(blob.part(arrays, "loop.").items())]
        self._walking, memory = rebuilt(self._kept(), kept)
        self._memory = memory if self.plan.keep_memory else self._memory._replace(luck=memory)
        self.environment.random.bit_generator.state = blob.join(blob.part(arrays, "random."), values["random"])
        self.steps, self.updates, self.elapsed = values["steps"], values["updates"], values["elapsed"]
        self._pace, self.live = values["pace"], Live(**values["live"])

    def _kept(self) -> Tree:
        """What a checkpoint holds of the loop."""
        return self._walking, self._memory if self.plan.keep_memory else self._memory.luck

    def close(self) -> None:
        """There is nothing to let go of."""


def make(
    config: Config, simulator: SimulatorSpec, plan: Plan, seed: int, clock: Callable[[], float] = perf_counter
) -> Compiled:
    """Make the simulator and the executor; see `make_executor`.

    Raises:
        ExecutionError: the simulator is of a kind that is not compiled.
    """
    from workers.learning.compiled_simulator.described import make as compiled

    try:
        environment = compiled(simulator)
    except ValueError as error:
        raise ExecutionError(str(error)) from error
    return Compiled(config, environment, plan, seed, clock)


def _placed(config: Any) -> Any:
    return msgspec.structs.replace(config, place=msgspec.structs.replace(config.place, backend="jax"))


def _add(total: Array, more: Array) -> Array:
    return total + more


__all__ = ["Compiled", "make"]
