"""The world of a ``workflow`` workload, whose actions are numbers of schedulers; and a cache of drawn episodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.spec import TERMS
from app.kinds.workflow.trace import Trace
from workers.evaluation.problem import DisturbedWorld
from workers.kinds.workflow.evaluation import episodes
from workers.kinds.workflow.evaluation.episodes import (
    ENTRIES,
    Episode,
    TaskDisturbance,
    disturbed_episode,
    objective_return,
    reference,
    terms,
)
from workers.kinds.workflow.evaluation.pictures import OUTCOMES, schedule_outcomes
from workers.kinds.workflow.evaluation.schedulers import EpisodeScheduler
from workers.kinds.workflow.simulator.simulate import Schedule
from workers.learning.simulator import Step

# Cache of drawn episodes, since all policies of an evaluation play the same ones.


Floats = NDArray[np.float64]
MOST_TASKS = 1_500_000  # in the cache; about 160 bytes each


class DisturbedEpisodes:
    """B episodes under one set of disturbances.

    Attributes:
        truth: the disturbed episodes, [B].
        earned: terms [6] and outcomes [6], keyed by ``id`` of an episode and number of a scheduler; filled on demand.
    """

    def __init__(self, known: Sequence[Episode], disturbance: Sequence[TaskDisturbance]) -> None:
        self.truth = [disturbed_episode(one, what) for one, what in zip(known, disturbance, strict=True)]
        self.earned: dict[tuple[int, int], tuple[Floats, Floats]] = {}


class DrawnEpisodes:
    """B drawn episodes without disturbances.

    Attributes:
        known: the episodes, [B].
        observation: description of each by ``episodes.ENTRIES``, [B, 4].
        after: state of the random generator after the draw.
    """

    def __init__(self, known: Sequence[Episode], observation: NDArray[np.float32], after: Mapping[str, Any]) -> None:
        self.known, self.observation, self.after = known, observation, after
        self._turned: dict[bytes, DisturbedEpisodes] = {}

    def disturb(self, disturbance: Sequence[TaskDisturbance]) -> DisturbedEpisodes:
        """Apply ``disturbance`` [B], one per episode; only the last result is cached."""
        key = b"".join(one.factor.tobytes() + np.float64(one.capacity).tobytes() for one in disturbance)
        if key not in self._turned:
            # an evaluation draws its disturbances once per world
            self._turned = {key: DisturbedEpisodes(self.known, disturbance)}
        return self._turned[key]


class Memory:
    """A least-recently-used cache of drawn episodes, limited to ``most`` tasks in all."""

    def __init__(self, most: int = MOST_TASKS) -> None:
        self.most = most
        self._kept: OrderedDict[bytes, DrawnEpisodes] = OrderedDict()

    def get(self, key: bytes) -> DrawnEpisodes | None:
        """Return the episodes cached under ``key``; None: there are none."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: bytes, drawn: DrawnEpisodes) -> None:
        """Cache ``drawn``, and evict the least recently used ones beyond the limit."""
        self._kept[key] = drawn
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > self.most:
            self._kept.popitem(last=False)


def _size(drawn: DrawnEpisodes) -> int:
    return sum(one.trace.tasks for one in {id(one): one for one in drawn.known}.values())


# The world: a step is a whole episode, played by one scheduler.
#
# The kind's rules and strategies are numbered schedulers; any other scheduler gets a number when it is added.
# Disturbances are drawn task by task: their step k applies to the task that is submitted k-th.


JITTER = 0.1  # standard deviation of the log factor of gaps between submissions under a seed
FIXED_OF = 16  # draws from which the fixed episode is the busiest
LEAST_FACTOR = 1e-9  # keeps run times above 0


class View(NamedTuple):
    """Observation of B episodes before they begin: N schedulers.

    Attributes:
        observation: description of each episode, [B, 4].
        mask: legal schedulers, all True, [B, N].
    """

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


class WorkflowWorld(DisturbedWorld):
    """B episodes of one workload: a step is a whole episode, scheduled by the scheduler whose number is the action.

    Args:
        layout: the workload's layout.
        traces: traces to draw episodes from; each of their tasks must fit on a node.
        held_out: held-out traces, with the same condition.
        schedulers: the N schedulers; an action is an index into them.
        tasks: largest number of tasks in an episode that is cut from a batch log; a workflow is played whole.
        batch: number of episodes B.
        seed: until ``reseed`` all B episodes are the same one, drawn from this seed.
        memory: cache shared with other worlds of the workload; None: the world creates its own.
    """

    advice: slice | None = None

    def __init__(
        self,
        layout: Layout,
        traces: Sequence[Trace],
        held_out: Sequence[Trace],
        schedulers: Sequence[EpisodeScheduler],
        tasks: int,
        batch: int,
        seed: int,
        memory: Memory | None = None,
    ) -> None:
        super().__init__(batch, seed, 1)
        self.layout, self.traces, self.models = layout, traces, held_out
        self.schedulers, self.numbered = list(schedulers), len(schedulers)
        self.tasks = tasks
        self.held_out, self._memory = len(held_out), memory or Memory()
        self.steps = episodes.largest_episode([*traces, *held_out], tasks)
        self.parameters: Sequence[str] = (
            *(f"weight.{term}" for term, weight in zip(TERMS, layout.weights, strict=True) if weight),
            *(f"price.{node.name}" for node in layout.spec.nodes if node.price_per_hour),
            "estimate.error",
            "load.work",
        )
        self.terms = np.zeros((batch, len(TERMS)), np.float32)
        self.paid = np.zeros(batch, np.float32)
        self.outcome_increments: NDArray[np.floating] = np.zeros((batch, len(OUTCOMES)))
        self._begun = False
        self._outcome: DisturbedEpisodes | None = None
        self._disturbances: list[TaskDisturbance] | None = None

    @property
    def observation_space(self) -> spaces.Box:
        """The space of one episode's description, [4]."""
        return spaces.Box(-np.inf, np.inf, (len(ENTRIES),), np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        """The space of N numbered schedulers."""
        return spaces.Discrete(self.numbered)

    @property
    def situation(self) -> Situation:
        """The layout, this world, and the view of its episodes."""
        return Situation(self.layout, self, self._view)

    @property
    def truth(self) -> Sequence[Episode]:
        """The episodes with their disturbances, which no policy may read, [B]."""
        return self._disturbed_episodes.truth

    @property
    def _disturbed_episodes(self) -> DisturbedEpisodes:
        if self._outcome is None:
            if self._disturbances is None:
                self._disturbances = self._task_disturbances()
            self._outcome = self._drawn.disturb(self._disturbances)
        return self._outcome

    def add_scheduler(self, scheduler: EpisodeScheduler) -> int:
        """Add a scheduler, and return its number, to be used as an action."""
        self.schedulers.append(scheduler)
        return len(self.schedulers) - 1

    def schedule(self, row: int, action: int) -> Schedule:
        """Play episode ``row`` by the scheduler of number ``action``, unless cached; return the schedule.

        Raises:
            ValueError: the scheduler can't play the episode.
        """
        episode = self.truth[row]
        key = (id(episode), action)  # equal episodes are one object, played once
        if key not in self._played:
            self._played[key] = self.schedulers[action].play(episode)
        return self._played[key]

    def outcome(self, row: int, action: int) -> NDArray[np.float64]:
        """Return the objective's terms [6] of episode ``row`` under the scheduler of number ``action``.

        Raises:
            ValueError: the scheduler can't play the episode.
        """
        return self._earned_by(row, action)[0]

    def _earned_by(self, row: int, action: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return terms [6] and outcomes [6] of episode ``row`` under the scheduler of number ``action``; cached."""
        episode = self.truth[row]
        earned = self._disturbed_episodes.earned if action < self.numbered else self._earned
        key = (id(episode), action)
        if key not in earned:
            schedule = self.schedule(row, action)
            paid_for = terms(episode.trace, episode.nodes, schedule, episode.measure)
            earned[key] = paid_for, schedule_outcomes(episode.trace, episode.nodes, schedule)
        return earned[key]

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Draw disturbances and B episodes; return observation [B, 4] and mask of legal schedulers [B, N]."""
        self.renew()
        for disturbance in self.disturbances:
            disturbance.begin(self)
        self._draw()
        return self._view.observation, self._view.mask

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Play every episode to its end by the scheduler numbered ``actions`` [B], and draw the next ones.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        if not self._begun:
            raise RuntimeError("reset() comes before the first step")
        earned = [self._earned_by(b, int(action)) for b, action in enumerate(actions)]
        paid_for, outcomes = (np.array(part) for part in zip(*earned, strict=True))
        weights = np.array([episode.weights for episode in self.truth])
        last = -(weights * paid_for).sum(axis=1).astype(np.float32), paid_for.astype(np.float32)
        view = self._view
        self.reset()
        self.paid, self.terms = last
        self.outcome_increments = outcomes
        now = self._view
        done = np.ones(self.batch, np.bool_)
        return Step(now.observation, now.mask, self.paid, done, view.observation)

    def get_state(self) -> dict[str, Any]:
        """Return a dict for ``set_state``: the random generator's state before the episodes' draw, and disturbances."""
        return {
            "random": self._before,
            "same": self.same,
            "model": self.model,
            "factors": {name: np.asarray(values).copy() for name, values in self.factors.items()},
            "luck": self._disturbances,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of ``get_state`` by drawing the same episodes. Raises KeyError if an entry is missing."""
        self.same, self.model, self.factors = state["same"], state["model"], dict(state["factors"])
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]
        self._draw()
        self._disturbances = state["luck"]

    def _draw(self) -> None:
        self._before = self.random.bit_generator.state
        self._played: dict[tuple[int, int], Schedule] = {}
        self._earned: dict[tuple[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        self._outcome, self._disturbances = None, None
        key = self._key()
        drawn = self._memory.get(key)
        if drawn is None:
            drawn = self._fresh()
            self._memory.put(key, drawn)
        self._drawn, self.random.bit_generator.state = drawn, drawn.after
        self._view = View(drawn.observation, np.ones((self.batch, self.numbered), np.bool_))
        self._begun = True

    def _key(self) -> bytes:
        factors = b"".join(name.encode() + np.asarray(each).tobytes() for name, each in self.factors.items())
        model = b"" if self.model is None else self.model.tobytes()
        return repr((self._before, self.same, self.batch)).encode() + factors + b"|" + model

    def _fresh(self) -> DrawnEpisodes:
        if self.same and not self.factors and self.model is None:
            known = [self._episode(0)] * self.batch
        else:
            known = [self._episode(b) for b in range(self.batch)]
        known_rows = {id(one): episodes.describe_episode(one.trace, one.nodes) for one in known}
        observation = np.array([known_rows[id(one)] for one in known], np.float32)
        return DrawnEpisodes(known, observation, self.random.bit_generator.state)

    def _episode(self, row: int) -> Episode:
        if self.same:
            self.random.bit_generator.state = self._before
        traces = self.traces if self.model is None else [self.models[int(self.model[row])]]
        trace = self._busiest(traces) if self.same else episodes.jitter_gaps(self._any(traces), JITTER, self.random)
        trace = episodes.distort_estimates(trace, self._factor("estimate.error", row))
        trace = episodes.scale_load(trace, self._factor("load.work", row))
        nodes, spec = self.layout.nodes, self.layout.spec
        dearer = np.array([self._factor(f"price.{node.name}", row) for node in spec.nodes])
        nodes = nodes._replace(price=nodes.price * dearer[nodes.kind])
        weights = self.layout.weights * np.array([self._factor(f"weight.{term}", row) for term in TERMS])
        return Episode(trace, nodes, weights, reference(trace, nodes))

    def _any(self, traces: Sequence[Trace]) -> Trace:
        trace = traces[int(self.random.integers(len(traces)))]
        return episodes.draw_episode(trace, self.tasks, self.random)

    def _busiest(self, traces: Sequence[Trace]) -> Trace:
        """Return the trace of highest load among several draws: schedulers don't differ where no task waits."""
        several = [self._any(traces) for _ in range(FIXED_OF)]
        loads = [episodes.describe_episode(trace, self.layout.nodes)[0] for trace in several]
        return several[int(np.argmax(loads))]

    def _factor(self, name: str, row: int) -> float:
        return float(self.factors[name][row % self.variety]) if name in self.factors else 1.0

    def _task_disturbances(self) -> list[TaskDisturbance]:
        """Draw the disturbances of B episodes, [B]: their step k applies to the k-th submitted task."""
        slow, capacity = np.zeros((self.batch, self.steps)), np.zeros((self.batch, self.steps))
        for k in range(self.steps):
            conditions = self.conditions()
            slow[:, k] = conditions.slowdown + conditions.noise[:, 0] + np.log1p(conditions.repeated)
            capacity[:, k] = conditions.capacity
        if not slow.any() and (capacity == 1).all():
            return [TaskDisturbance(np.ones(one.trace.tasks), 1.0) for one in self._drawn.known]
        counts = [one.trace.tasks for one in self._drawn.known]
        return [
            TaskDisturbance(np.maximum(np.exp(slow[b, :count]), LEAST_FACTOR), float(capacity[b, :count].mean()))
            for b, count in enumerate(counts)
        ]

    def value(self, row: int, action: int) -> float:
        """Return the negative weighted sum of terms of episode ``row`` under the scheduler of number ``action``.

        Raises:
            ValueError: the scheduler can't play the episode.
        """
        return objective_return(self.truth[row].weights, self.outcome(row, action))


@dataclass(frozen=True)
class Always:
    """A policy, called ``name``, that always chooses the scheduler of number ``number``."""

    number: int
    name: str

    def act(self, situation: Situation) -> Choice:
        """Choose ``number`` in each of B episodes, [B]."""
        return Choice(np.full(len(situation.view.mask), self.number))


@dataclass
class SchedulerPolicy(Policy):
    """A policy that schedules by ``scheduler``; ``act`` raises RuntimeError before ``watch``."""

    scheduler: EpisodeScheduler
    _number: int | None = field(default=None, repr=False)

    @property
    @override
    def name(self) -> str:
        return self.scheduler.name

    def watch(self, world: WorkflowWorld) -> None:
        """Add the scheduler to ``world``, and store its number."""
        self._number = world.add_scheduler(self.scheduler)

    @override
    def act(self, situation: Situation) -> Choice:
        if self._number is None:
            raise RuntimeError("watch() comes before act()")
        return Choice(np.full(len(situation.view.mask), self._number))


class Hindsight(Policy):
    """A policy that knows the true run times, and chooses the best numbered scheduler in each episode."""

    name = "hindsight"

    def act(self, situation: Situation) -> Choice:
        """Choose the best scheduler's number, [B]; the choice's ``values`` are the returns of all N, [B, N]."""
        world, shape = situation.state, situation.view.mask.shape
        values: NDArray[np.float64] = np.array([[world.value(b, n) for n in range(shape[1])] for b in range(shape[0])])
        return Choice(values.argmax(axis=1), values)
