"""The simulator of an ``iterative`` workload, compiled: the functions of its kind, traced."""

from copy import copy
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import advice_slice, view
from app.kinds.iterative.preferences import Stakes, stakes
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import potential, reward, terms
from app.kinds.iterative.state import State
from app.kinds.iterative.step import step
from app.policies.base import RETURN_SCALE
from workers.kinds.iterative.expected import Outcomes, expectation, outcomes
from workers.kinds.iterative.simulator import IterativeSimulator, Ranges, ran
from workers.learning.compiled_simulator.base import Array, Moved, Seen, Tree
from workers.learning.compiled_simulator.traced import plain, traced

INTEGERS = {"iteration": jnp.int32, "levels": jnp.int16}


class Episodes(NamedTuple):
    """B runs: what a policy may know, the true log run effect [B, M], and what lasts as long as the run."""

    state: State
    effect: Array
    given: Stakes


class World(NamedTuple):
    """Runs, and the best outlook of each, [B]."""

    episodes: Episodes
    potential: Array


class CompiledIterative:
    """As `IterativeSimulator` (or `ExpectedSimulator`, where paid in ``expected`` rewards), for a compiled loop.

    Beginnings are drawn by the NumPy simulator itself; steps trace the very functions that it calls.
    """

    def __init__(
        self,
        layout: Layout,
        table: ModelTable,
        batch: int,
        seed: int,
        ranges: Ranges = Ranges(),
        *,
        expected: bool = True,
        nodes: int = 3,
    ) -> None:
        self.layout, self.batch = layout, batch
        self.host = IterativeSimulator(layout, table, 1, seed, ranges)
        self.random, self.projector = self.host.random, self.host.projector
        self.usual = max(1, round(layout.iterations * (1 - ranges.explore / 2)))
        self.drifts = bool(self.projector.drift_sd.any())
        self.normals = len(layout.metrics) * (2 if self.drifts else 1)
        self.outcomes = outcomes(nodes) if expected else None
        self.host.reset()  # fills the tables that are made when they are first asked for
        self.host.step(np.array([layout.noop]))

    @property
    def observation_space(self) -> spaces.Box:
        """The layout's."""
        return self.layout.observation_space

    @property
    def action_space(self) -> spaces.Discrete:
        """The layout's."""
        return self.layout.action_space

    @property
    def advice(self) -> slice:
        """Where the outlook of each action stands."""
        return advice_slice(self.layout)

    def constants(self) -> Tree:
        """The model's tables: handed to the program, not built into it, so that it serves other models too."""
        holders = (self.projector, self.projector.moves, self.layout)
        return [{name: part for name, part in vars(holder).items() if _holds(part)} for holder in holders]

    def beginnings(self, rounds: int) -> NDArray[np.float32]:
        """Draw episodes; a row holds all numbers of one."""
        state, effect = self.host.begin(rounds * self.batch)
        given = stakes(self.projector, state)
        columns = [*state, effect, *(field.T for field in given)]
        rows = np.concatenate([np.reshape(part, (len(effect), -1)).astype(np.float32) for part in columns], axis=1)
        return rows.reshape(rounds, self.batch, -1)

    def begin(self, constants: Tree, beginning: Array) -> tuple[World, Seen]:
        """Unpack the rows, and look."""
        return self._looked(self._traced(constants), self._unpacked(beginning))

    def step(self, constants: Tree, world: World, action: Array, normal: Array, beginning: Array) -> Moved:
        """One iteration under each action."""
        projector = self._traced(constants)
        before, effect, given = traced(world.episodes)
        levels = step(projector.layout, before.levels, traced(action))
        metrics, normal = len(self.layout.metrics), traced(normal)
        if self.drifts:
            effect = effect + normal[:, metrics:] * projector.drift_sd
        after = ran(projector, before, levels, effect, normal[:, :metrics].copy())
        done = plain(after.iteration >= self.layout.iterations)
        paid = self._paid(projector, before, after, given, levels)
        ran_on = jax.tree.map(plain, Episodes(after, effect, given), is_leaf=_is_traced)
        episodes = _where(done, self._unpacked(beginning), ran_on)
        found, seen = self._looked(projector, episodes)
        if self.outcomes is None:
            paid = paid + found.potential * ~done
        return Moved(found, seen, (paid - world.potential) * RETURN_SCALE, done)

    def _paid(self, projector: Projector, before: State, after: State, given: Stakes, levels: Any) -> Array:
        """Rewards, [B]; in expectation the potential afterwards is in it."""
        if self.outcomes is not None:
            return self._expected(projector, before, levels, given, self.outcomes)
        return plain(reward(before.weights, terms(projector, before, after, given)))

    @staticmethod
    def _expected(projector: Projector, before: State, levels: Any, given: Stakes, outcomes: Outcomes) -> Array:
        """The sum over outcomes one by one: the program holds what is done for one of them once."""
        places, weights = jnp.asarray(outcomes.places), jnp.asarray(outcomes.weights)

        def add(node: Array, total: Array) -> Array:
            one = traced(Outcomes(places[node][None], weights[node][None]))
            return total + plain(expectation(projector, before, levels, given, one))

        return lax.fori_loop(0, len(places), add, jnp.zeros_like(plain(before.cost)))

    def _looked(self, projector: Projector, episodes: Episodes) -> tuple[World, Seen]:
        known = traced(episodes)
        seen = view(projector, known.state, known.given)
        return World(episodes, plain(potential(seen))), Seen(plain(seen.observation), plain(seen.mask))

    def _traced(self, constants: Tree) -> Projector:
        """The projector, its layout and its moves over the program's own arrays."""
        projector, moves, layout = copy(self.projector), copy(self.projector.moves), copy(self.layout)
        for holder, parts in zip((projector, moves, layout), constants, strict=True):
            vars(holder).update(traced(parts))
        vars(projector).update(layout=layout, moves=moves)
        vars(moves).update(_projector=projector)
        return projector

    def _unpacked(self, rows: Array) -> Episodes:
        """Undo `beginnings`."""
        like = self._example
        parts, start = [], 0
        for shape in like:
            width = shape[1] if len(shape) > 1 else 1
            part = rows[:, start : start + width]
            parts.append(part if len(shape) > 1 else part[:, 0])
            start += width
        fields = len(State._fields)
        state = State(*parts[:fields])
        state = state._replace(**{name: getattr(state, name).astype(kind) for name, kind in INTEGERS.items()})
        given = Stakes(*(part.T for part in parts[fields + 1 :]))
        return Episodes(state, parts[fields], given)

    @property
    def _example(self) -> list[tuple[int, ...]]:
        """Shapes of the parts of a row."""
        state, effect = self.host.state, self.host.state.effect
        return [np.shape(part) for part in (*state, effect, *(f.T for f in stakes(self.projector, state)))]


def _holds(part: Any) -> bool:
    """Whether an attribute is made of arrays."""
    if isinstance(part, dict):
        return bool(part) and all(isinstance(value, np.ndarray) for value in part.values())
    if isinstance(part, list):
        return bool(part) and all(isinstance(value, np.ndarray) for value in part)
    return isinstance(part, np.ndarray)


def _is_traced(part: Any) -> bool:
    return not isinstance(part, tuple)


def _where(chosen: Array, new: Episodes, old: Episodes) -> Episodes:
    """Rows of ``new`` where ``chosen`` [B]; the runs lie along the first axis, those of the stakes along the last."""

    def pick(fresh: Array, kept: Array) -> Array:
        return jnp.where(chosen.reshape((-1,) + (1,) * (fresh.ndim - 1)), fresh, kept)

    state, effect = jax.tree.map(pick, (new.state, new.effect), (old.state, old.effect))
    given = jax.tree.map(lambda fresh, kept: jnp.where(chosen, fresh, kept), new.given, old.given)
    return Episodes(state, effect, given)
