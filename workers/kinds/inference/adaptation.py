"""Training of adaptive rules: conditions and loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.inference.dynamics import Dynamics, levels, width
from app.kinds.inference.heuristics import ALGORITHM, AdaptivePlanner
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from workers.evaluation.wrappers import Conditions, Disturbance, World, neutral
from workers.inputs import Conditions as Wanted
from workers.inputs import Workload
from workers.kinds.inference.adaptive_experience import Fit, MetaLearner, Tasks, gathered, joined
from workers.kinds.inference.simulator.arrivals import Recorded
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.learning.bracket import Entry, TrialRecord
from workers.learning.training.conclude import Contender, conclude
from workers.learning.training.driver import Stage, TrainedAgent, Trainer
from workers.learning.training.problem import TrainingProblem
from workers.learning.training.request import Request

# Worlds under many conditions: what a dynamics model that is to adapt is learned in.
#
# Every user's load goes from level to level at times of its own, bursts come on top, servers become slower or faster
# for good, and some are lost for a while.


LEVELS = (0.25, 3.0)  # of the usual rate, drawn log-uniformly
LASTING = 45.0  # seconds of a level on average
BURSTS = (0.0, 0.3)  # variance of a control interval's rate over its level, drawn by stretch
PACES = (0.6, 2.5)  # factors of seconds, drawn log-uniformly
SHIFTED, LOST = 0.7, 0.3  # shares of the episodes in which servers change pace, or are lost
STRETCH = 3_600  # seconds of requests that episodes are drawn from
SHARPNESS = 0.05  # standard deviation of the log of seconds from one variant and size to another


class Shifting(Disturbance):
    """A disturbance that draws when servers change their pace, and when some are lost.

    Args:
        seed: of all that is drawn.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @override
    def begin(self, world: World) -> None:
        world.reseed(self.seed)
        random, count = np.random.default_rng(self.seed), world.batch
        low, high = np.log(PACES)
        self.pace = random.uniform(low, high, count) * (random.random(count) < SHIFTED)
        self.when = random.integers(-world.steps // 2, world.steps, count)
        self.left = np.where(random.random(count) < LOST, random.uniform(0.3, 0.9, count), 1.0)
        self.lost = random.integers(0, world.steps, count)
        self.now = 0

    @override
    def conditions(self, world: World) -> Conditions:
        found = neutral(world.batch, world.channels)
        slowdown = np.where(self.now >= self.when, self.pace, 0.0)
        short = (self.now >= self.lost) & (self.now < self.lost + world.steps // 3 + 1)
        self.now += 1
        return found._replace(slowdown=slowdown, capacity=np.where(short, self.left, 1.0))


def varied(layout: Layout, model: ServiceModel, batch: int, seed: int) -> InferenceWorld:
    """B episodes, each under conditions of its own."""
    random = np.random.default_rng(seed)
    apart = random.normal(0.0, SHARPNESS, (8, *model.log_seconds.shape[1:]))
    members = model.log_seconds[random.integers(len(model.log_seconds), size=8)] + apart
    truth = replace(model, log_seconds=members)
    world = InferenceWorld(layout, [truth], Wanted(batch, seed), requests(layout, model, seed), believed=model)
    disturbances: list[Any] = world.disturbances
    disturbances.append(Shifting(seed))
    return world


def requests(layout: Layout, model: ServiceModel, seed: int) -> Recorded:
    """Requests of all users over a stretch."""
    random, window = np.random.default_rng([seed, 1]), layout.spec.control_seconds
    counts = [random.poisson(rate * _level(random) * _bursts(random, window)).astype(np.int64) for rate in usual(model)]
    return Recorded.of_counts(counts, layout.spec.episode_seconds, seed)


def usual(model: ServiceModel) -> NDArray[np.float64]:
    """Requests per second of each user over the day, [U]."""
    rate: NDArray[np.float64] = model.rate.mean(axis=1)
    return rate


def _level(random: np.random.Generator) -> NDArray[np.float64]:
    """The factor of the rate in each second of a stretch, [STRETCH]: levels that last an exponential time each."""
    ends = np.cumsum(random.exponential(LASTING, int(4 * STRETCH / LASTING))).astype(int)
    low, high = np.log(LEVELS).tolist()
    levels = np.exp(random.uniform(low, high, len(ends) + 1))
    found: NDArray[np.float64] = levels[np.searchsorted(ends, np.arange(STRETCH), side="right")]
    return found


def _bursts(random: np.random.Generator, window: float) -> NDArray[np.float64]:
    variance = random.uniform(*BURSTS) + 1e-9
    drawn = random.gamma(1 / variance, variance, int(STRETCH / window) + 1)
    found: NDArray[np.float64] = drawn[(np.arange(STRETCH) / window).astype(int)]
    return found


# The forecast of the load: least squares on the last parts of a control interval.
#
# A network that adapts to them told no better (see ``benchmarks/inference_adaptation.py``).


RIDGE = 1.0  # against as many squares as there are moments
Floats = NDArray[np.float64]


class LoadFit(NamedTuple):
    """Weights of the last parts and a constant, [PARTS + 1]; root mean squared errors: of it, and of the usual."""

    weights: Floats
    error: float
    usual_error: float


def fit_load(tasks: Tasks, usual: Floats) -> LoadFit:
    """Fit what ``Dynamics.counts`` goes by.

    Args:
        tasks: of several worlds.
        usual: requests of each user in a part of a control interval, [U].
    """
    own = usual[tasks.user]
    seen, target = levels(own, tasks.parts), levels(own, tasks.next)[:, 0]
    inputs = np.concatenate([seen, np.ones((len(seen), 1))], axis=1)
    weights = np.linalg.solve(inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1]), inputs.T @ target)
    error = float(np.sqrt(np.mean((inputs @ weights - target) ** 2)))
    return LoadFit(weights, error, float(np.sqrt(np.mean(target**2))))


# The training of an adaptive planner, of algorithm ``grbal``: gather transitions, learn to adapt, judge.


EPISODES = 64  # of a world
STEPS = 200_000  # decisions that are watched, where no budget is given: it takes less than a policy does
UPDATES, CHUNK = 500, 100
SPREADS = (0.05, 0.2, 0.5, 1.5)
"""Of the log of the load over what is expected, for which servers are kept on; with the largest nearly all are."""


class AdaptiveTrainer(Trainer):
    """Trains ``grbal`` in about a minute: gathers transitions, learns a model of the dynamics, judges its planner.

    Args:
        workload: with its domain model.
        problem: on which policies are scored and judged.
        request: what is asked for; its budget is decisions that are watched.
        champion: the artifact that answers now.
    """

    eta_seconds: float | None = None

    def __init__(self, workload: Workload, problem: TrainingProblem, request: Request, champion: bytes | None) -> None:
        self.problem, self.request, self.champion = problem, request, champion
        self._layout, self._model = Layout(workload.spec), ServiceModel.from_bytes(workload.model)
        self._budget = request.budget or STEPS
        self._worlds: list[Tasks] = []
        self._learner: MetaLearner | None = None
        self._begun, self._seconds = perf_counter(), 0.0
        self._watched, self._loss = 0, 0.0

    @property
    def stages(self) -> Sequence[Stage]:
        """Gathering transitions, then learning from them."""
        return (
            Stage("gathering", 0.7, self._gather, lambda: self._watched / self._budget),
            Stage("learning", 0.3, self._learn, lambda: self._updates / UPDATES),
        )

    @property
    @override
    def live(self) -> Mapping[str, Any]:
        return {
            "algorithm": ALGORITHM,
            "trials": 1,
            "steps": self._watched,
            "updates": self._updates,
            "loss": self._loss,
        }

    @property
    def _updates(self) -> int:
        return 0 if self._learner is None else self._learner.updates

    def _gather(self) -> bool:
        seed = world_seed(self.request.seed, len(self._worlds))
        tasks, steps = gathered(varied(self._layout, self._model, EPISODES, seed), seed)
        self._worlds.append(tasks)
        self._watched += steps
        return self._watched >= self._budget

    def _learn(self) -> bool:
        if self._learner is None:
            self._learner = MetaLearner(joined(self._worlds), self.request.seed)
        self._loss = self._learner.advance(CHUNK)
        self._seconds = perf_counter() - self._begun
        return self._updates >= UPDATES

    def conclude(self) -> TrainedAgent:
        """Judge the planner with the spread of the load that scores best."""
        assert self._learner is not None  # noqa: S101  (the stages are done)
        pace, load = self._learner.fit(), fit_load(joined(self._worlds), per_part(self._layout, self._model))
        artifacts = [self.problem.save(planner(self._layout, self._model, pace, load, s)) for s in SPREADS]
        scores = [self.problem.score(artifact) for artifact in artifacts]
        best = int(np.argmax(scores))
        artifact, record = artifacts[best], TrialRecord(Entry(ALGORITHM, self.request.seed), 1, scores[best])
        contender = Contender(record, 1.0, artifact, self._report(pace, load, SPREADS[best]))
        return conclude(self.problem, self.request, [contender], self.problem.plan(), self.champion)

    def _report(self, pace: Fit, load: LoadFit, spread: float) -> dict[str, Any]:
        errors = {"pace": dict(pace.errors), "load": {"forecast": load.error, "usual": load.usual_error}}
        return {
            "config": {"errors": errors, "spread": spread},
            "environment_steps": self._watched,
            "updates": self._updates,
            "seconds": self._seconds,
            "steps_per_second": self._watched / max(self._seconds, 1e-9),
            "curve": [],
            "build": None,
            "imitated": None,
        }

    def checkpoint(self) -> bytes:
        """Empty: a training that is resumed begins anew."""
        return b""

    @override
    def restore(self, data: bytes) -> None:
        raise ValueError(f"nothing is kept of a training of {ALGORITHM}, {len(data)} bytes were given")

    @override
    def close(self) -> None: ...


def world_seed(seed: int, number: int) -> int:
    """Of each world of a training."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def per_part(layout: Layout, model: ServiceModel) -> NDArray[np.float64]:
    """Usual requests of each user in a part of a control interval, [U]."""
    return usual(model) * width(layout)


def planner(
    layout: Layout, model: ServiceModel, pace: Fit, load: LoadFit, spread: float, steps: int = 1
) -> AdaptivePlanner:
    """The policy of what was learned.

    Args:
        layout, model: of the workload.
        pace, load: what was learned.
        spread: of the log of the load over what is foreseen, see ``AdaptivePlanner``.
        steps: of the gradient, by which it adapts.
    """
    counts = per_part(layout, model)
    dynamics = Dynamics(pace.start, pace.rates, pace.errors["adapted"], load.error, load.weights, counts, steps)
    config = {"algorithm": ALGORITHM, "steps": steps, "spread": spread}
    return AdaptivePlanner(config, dynamics)
