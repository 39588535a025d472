"""Algorithm ``grbal`` of kind ``inference``: data, meta-learning and training of the adaptive planner.

*Pace* is the network of ``Dynamics`` that predicts the natural log of a batch's seconds over the domain model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.dynamics import (
    CONTROL,
    NONE,
    PARTS,
    PARTS_OF_INTERVAL,
    Dynamics,
    Projector,
    State,
    Transitions,
    examples,
    levels,
    part_of,
    width,
)
from app.kinds.inference.heuristics import ALGORITHM, AdaptivePlanner, Composed
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.scaling import Lookahead, Scaler
from app.policies.network import NAMES, Examples, gradient, predicted
from workers.evaluation.wrappers import Conditions, Disturbance, World, neutral
from workers.inputs import Conditions as Wanted
from workers.inputs import Workload
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.learning.training.conclude import Contender, conclude
from workers.learning.training.driver import Stage, TrainedAgent, Trainer, TrainingProblem
from workers.learning.training.request import Entry, Request, TrialRecord

STRAYED = 0.2  # share of random actions
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tasks(NamedTuple):
    """Training data: N tasks of adapting to batches' pace (seconds over expected), and M samples of a user's load.

    Attributes:
        past: K batches to which the network of the pace adapts, [N, K, …].
        coming: Q batches whose pace it then predicts, [N, Q, …].
        episode: index of each task's episode, [N].
        parts: number of a user's requests in each of the last parts of control intervals, [M, PARTS].
        next: mean number per part in the following control interval, [M, 1].
        user: index of the user, [M].
    """

    past: Examples
    coming: Examples
    episode: Integers
    parts: Integers
    next: Floats
    user: Integers


class _Looks(NamedTuple):
    """Snapshots of episodes at the beginnings of parts of control intervals, n in all, by episode and part.

    Attributes:
        episode, part: indices of the episode and of the part within it, [n].
        ended: number of batches ended so far, [n].
        recent: last batches and numbers of requests, n rows.
    """

    episode: Integers
    part: Integers
    ended: Integers
    recent: Transitions


class ExploringPolicy(Policy, Scaler):
    """A policy that looks ahead, takes 20 % random actions, and asks for random numbers of servers."""

    name = "exploring"

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self._rule = random, Composed(Lookahead(), self)

    @override
    def target_servers(self, projector: Projector, state: State) -> Integers:
        layout = projector.layout
        return self.random.integers(layout.minimum, layout.maximum + 1, (len(state.context), len(layout.servers)))

    @override
    def act(self, situation: Situation) -> Choice:
        mask, state = situation.view.mask, situation.state
        chosen = self._rule.act(situation).action
        drawn = np.where(mask, self.random.random(mask.shape), -1.0).argmax(axis=1)
        strays = (self.random.random(len(mask)) < STRAYED) & (state.context != CONTROL)
        return Choice(np.where(strays, drawn, chosen))


def gather_tasks(world: InferenceWorld, seed: int) -> tuple[Tasks, int]:
    """Play B episodes to their end; return training data, and the number of decisions made.

    Args:
        world: a world that has not begun.
        seed: seed of the exploration.
    """
    looks, steps = _play_episodes(world, ExploringPolicy(np.random.default_rng(seed)))
    return Tasks(*_paces(world.layout, looks), *_loads(looks)), steps


def _play_episodes(world: InferenceWorld, policy: ExploringPolicy) -> tuple[_Looks, int]:
    world.reset()
    window, numbers, steps = world.layout.spec.control_seconds, np.full(world.batch, NONE), 0
    looks: list[_Looks] = []
    going = np.ones(world.batch, np.bool_)
    while going.any():
        part = np.array([part_of(now, window) for now in world.worlds.clock[:, kernels.NOW]])
        rows = np.flatnonzero(going & (part > numbers))
        if len(rows):
            ended = world.worlds.counts[rows, kernels.FINISHED]
            looks.append(_Looks(rows, part[rows], ended, _rows(world.recent, rows)))
            numbers[rows] = part[rows]
        steps += int(going.sum())
        going &= ~world.step(policy.act(world.situation).action).done
    return _sort_by_episode(looks), steps


def _rows(recent: Transitions, rows: Integers) -> Transitions:
    return Transitions(recent.batch[rows], recent.pace[rows], recent.arrived[rows])


def _sort_by_episode(looks: list[_Looks]) -> _Looks:
    episode, part, ended = (np.concatenate([getattr(one, name) for one in looks]) for name in _Looks._fields[:3])
    recent = [np.concatenate(arrays) for arrays in zip(*(one.recent for one in looks), strict=True)]
    order = np.lexsort((part, episode))
    return _Looks(episode[order], part[order], ended[order], Transitions(*(array[order] for array in recent)))


def _after(looks: _Looks, parts: int) -> tuple[Integers, Integers]:
    """Return the indices of k snapshots, and of the snapshots ``parts`` parts later in the same episodes, [k] each."""
    key = looks.episode * (int(looks.part.max()) + parts + 1) + looks.part
    later = np.searchsorted(key, key + parts)
    result = (later < len(key)) & (key[np.minimum(later, len(key) - 1)] == key + parts)
    return np.flatnonzero(result), later[result]


def _paces(layout: Layout, looks: _Looks) -> tuple[Examples, Examples, Integers]:
    """Return N tasks: batches known at a snapshot [N, K, …], batches ended in the next part [N, Q, …], episode [N]."""
    now, later = _after(looks, 1)
    past, coming = (examples(layout, _rows(looks.recent, which)) for which in (now, later))
    count = coming.weight.shape[1]
    new = np.arange(count) >= count - (looks.ended[later] - looks.ended[now])[:, None]
    coming = coming._replace(weight=coming.weight * new)
    some = coming.weight.sum(axis=1) > 0
    return _of(past, some), _of(coming, some), looks.episode[now][some]


def _loads(looks: _Looks) -> tuple[Integers, Floats, Integers]:
    """Return M samples: requests in the last parts [M, PARTS], mean per part in the next interval [M, 1], user [M]."""
    now, later = _after(looks, PARTS_OF_INTERVAL)
    known = looks.recent.arrived[now]
    coming = looks.recent.arrived[later][:, :, -PARTS_OF_INTERVAL:].mean(axis=2)
    user = np.broadcast_to(np.arange(known.shape[1]), coming.shape)
    return known.reshape(-1, PARTS), coming.reshape(-1, 1), user.ravel()


def _of(several: Examples, rows: NDArray[np.bool_]) -> Examples:
    return Examples(*(part[rows] for part in several))


def join_tasks(several: Sequence[Tasks]) -> Tasks:
    """Concatenate the data of several worlds; episodes get distinct numbers."""
    first = np.cumsum([0, *(int(tasks.episode.max(initial=0)) + 1 for tasks in several[:-1])])
    reported = [tasks._replace(episode=tasks.episode + begin) for tasks, begin in zip(several, first, strict=True)]
    past, coming = (
        Examples(*(np.concatenate(parts) for parts in zip(*(getattr(tasks, name) for tasks in reported), strict=True)))
        for name in ("past", "coming")
    )
    rest = (np.concatenate([getattr(tasks, name) for tasks in reported]) for name in Tasks._fields[2:])
    return Tasks(past, coming, *rest)


# Meta-learning: initial parameters from which one gradient step on past batches predicts the coming ones best.
#
# First-order MAML (Finn et al., 2017) with a step size per parameter: the outer gradient treats the inner one as
# constant. Differentiating through it predicted no better (``benchmarks/inference_adaptation.py``), and took three
# times as long.


UNITS = 16
BATCH, LEARNING_RATE = 512, 0.01
FIRST_RATE = 0.05  # initial step size of the inner step
HELD_OUT = 5  # every fifth episode is held out


class Fit(NamedTuple):
    """A network that predicts the natural log of batches' pace (seconds over expected) and adapts by gradient steps.

    Attributes:
        start: initial parameters, by name.
        rates: step size of each parameter, by name.
        errors: root mean squared error of the log pace on held-out episodes: ``adapted``, ``unadapted``, and
            ``expected`` (predicting 0).
    """

    start: Mapping[str, NDArray[np.float64]]
    rates: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, float]


class MetaLearner:
    """Learns, by first-order MAML, the network that predicts batches' pace (seconds over expected seconds).

    Args:
        tasks: the training data.
        seed: seed of initial parameters and minibatches.
        steps: number of inner gradient steps; 0: the network learns without adapting.
    """

    def __init__(self, tasks: Tasks, seed: int, steps: int = 1) -> None:
        self.steps, self.updates = steps, 0
        self._random = np.random.default_rng(seed)
        held_out = tasks.episode % HELD_OUT == 0
        self._learned, self._held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self._past, self._coming = tensors(tasks.past), tensors(tasks.coming)
        width = tasks.past.inputs.shape[2]
        shapes = dict(zip(NAMES, [(width, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
        scale = {"hidden.weight": width**-0.5, "out.weight": UNITS**-0.5}
        self.start = {
            name: _variable(scale.get(name, 0.0) * self._random.standard_normal(shape))
            for name, shape in shapes.items()
        }
        self.rates = {name: _variable(np.full(shape, FIRST_RATE)) for name, shape in shapes.items()}
        self._optimiser = torch.optim.Adam([*self.start.values(), *self.rates.values()], LEARNING_RATE)

    def advance(self, updates: int) -> float:
        """Do ``updates`` gradient updates; return their mean loss (squared error of the log pace)."""
        losses = []
        for _ in range(updates):
            rows = torch.from_numpy(self._random.choice(self._learned, min(BATCH, len(self._learned))))
            loss = self.loss(rows, self.steps)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            losses.append(float(loss.detach()))
        self.updates += updates
        return float(np.mean(losses))

    def loss(self, rows: Tensor, steps: int) -> Tensor:
        """Return the weighted mean squared error of the log pace on the coming batches of the tasks ``rows`` (indices),
        after ``steps`` gradient steps on their past batches."""
        past, coming = (Examples(*(part[rows] for part in whole)) for whole in (self._past, self._coming))
        now: Mapping[str, Tensor] = self.start
        for _ in range(steps):
            with torch.no_grad():
                slope = gradient(now, past)
            now = {name: now[name] - self.rates[name] * slope[name] for name in NAMES}
        values: Tensor = (coming.weight * (predicted(now, coming.inputs) - coming.target) ** 2).sum()
        return values / coming.weight.sum()

    def fit(self) -> Fit:
        """Return the learned parameters and step sizes, and the errors on held-out episodes."""
        rows = torch.from_numpy(self._held_out)
        weight, target = self._coming.weight[rows], self._coming.target[rows]
        with torch.no_grad():
            squares = {
                "adapted": self.loss(rows, self.steps),
                "unadapted": self.loss(rows, 0),
                "expected": (weight * target**2).sum() / weight.sum(),
            }
        start, rates = (
            {name: value.detach().numpy().copy() for name, value in part.items()} for part in (self.start, self.rates)
        )
        return Fit(start, rates, {name: float(square.sqrt()) for name, square in squares.items()})


def tensors(several: Examples) -> Examples:
    """Convert the arrays to float64 tensors of torch."""
    return Examples(*(torch.from_numpy(np.ascontiguousarray(part, np.float64)) for part in several))


def _variable(value: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.array(value, np.float64)).requires_grad_()


# Worlds under varied conditions, in which the dynamics model learns to adapt.
#
# Every user's load changes its level at random times, with bursts; servers permanently change their pace, or some are
# lost for a while.


LEVELS = (0.25, 3.0)  # factors of the usual rate, log-uniform
LASTING = 45.0  # mean seconds of a level
BURSTS = (0.0, 0.3)  # variance of a control interval's rate relative to its level, drawn once per user
PACES = (0.6, 2.5)  # factors of batch seconds, log-uniform
SHIFTED, LOST = 0.7, 0.3  # shares of the episodes in which servers change pace, and in which some are lost
STRETCH = 3_600  # seconds of requests from which episodes are drawn
SHARPNESS = 0.05  # standard deviation of log seconds between variants and sizes


class PaceShifts(Disturbance):
    """A disturbance that draws when servers change their pace, and when some are lost.

    Args:
        seed: seed of the draws.
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
        conditions = neutral(world.batch, world.channels)
        slowdown = np.where(self.now >= self.when, self.pace, 0.0)
        short = (self.now >= self.lost) & (self.now < self.lost + world.steps // 3 + 1)
        self.now += 1
        return conditions._replace(slowdown=slowdown, capacity=np.where(short, self.left, 1.0))


def vary_world(layout: Layout, model: ServiceModel, batch: int, seed: int) -> InferenceWorld:
    """Make a world of ``batch`` episodes, each with other service times and requests. Policies assume ``model``."""
    random = np.random.default_rng(seed)
    apart = random.normal(0.0, SHARPNESS, (8, *model.log_seconds.shape[1:]))
    members = model.log_seconds[random.integers(len(model.log_seconds), size=8)] + apart
    truth = replace(model, log_seconds=members)
    world = InferenceWorld(layout, [truth], Wanted(batch, seed), requests(layout, model, seed), believed=model)
    disturbances: list[Any] = world.disturbances
    disturbances.append(PaceShifts(seed))
    return world


def requests(layout: Layout, model: ServiceModel, seed: int) -> RecordedArrivals:
    """Draw the requests of all users over one hour, by the domain model, with changing levels and bursts."""
    random, window = np.random.default_rng([seed, 1]), layout.spec.control_seconds
    counts = [random.poisson(rate * _level(random) * _bursts(random, window)).astype(np.int64) for rate in usual(model)]
    return RecordedArrivals.of_counts(counts, layout.spec.episode_seconds, seed)


def usual(model: ServiceModel) -> NDArray[np.float64]:
    """Return the mean requests per second of each of U users over the day, [U]."""
    rate: NDArray[np.float64] = model.rate.mean(axis=1)
    return rate


def _level(random: np.random.Generator) -> NDArray[np.float64]:
    """Draw the factor of a user's rate in each second, [STRETCH]; piecewise constant, with exponential durations."""
    ends = np.cumsum(random.exponential(LASTING, int(4 * STRETCH / LASTING))).astype(int)
    low, high = np.log(LEVELS).tolist()
    levels = np.exp(random.uniform(low, high, len(ends) + 1))
    values: NDArray[np.float64] = levels[np.searchsorted(ends, np.arange(STRETCH), side="right")]
    return values


def _bursts(random: np.random.Generator, window: float) -> NDArray[np.float64]:
    variance = random.uniform(*BURSTS) + 1e-9
    drawn = random.gamma(1 / variance, variance, int(STRETCH / window) + 1)
    values: NDArray[np.float64] = drawn[(np.arange(STRETCH) / window).astype(int)]
    return values


# The forecast of the load: least squares on the last parts of control intervals.
#
# An adaptive network forecast no better (``benchmarks/inference_adaptation.py``).


RIDGE = 1.0  # ridge penalty, relative to a sum of squares over all samples


class LoadFit(NamedTuple):
    """A fitted forecast of the load level of the next control interval: the square root of the number of requests over
    that of the usual number, minus 1.

    Attributes:
        weights: weights of the levels in the last parts, and of a constant, [PARTS + 1].
        error, usual_error: root mean squared error of the forecast, and of predicting the usual load.
    """

    weights: Floats
    error: float
    usual_error: float


def fit_load(tasks: Tasks, usual: Floats) -> LoadFit:
    """Forecast the next load level from the last ones by ridge regression; a level is √(requests / usual requests) − 1.

    Args:
        tasks: data of several worlds.
        usual: usual number of requests of each of U users per part of a control interval, [U].
    """
    own = usual[tasks.user]
    entries, target = levels(own, tasks.parts), levels(own, tasks.next)[:, 0]
    inputs = np.concatenate([entries, np.ones((len(entries), 1))], axis=1)
    weights = np.linalg.solve(inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1]), inputs.T @ target)
    error = float(np.sqrt(np.mean((inputs @ weights - target) ** 2)))
    return LoadFit(weights, error, float(np.sqrt(np.mean(target**2))))


EPISODES = 64  # per world
STEPS = 200_000  # decisions without a given budget; fewer than a policy needs
UPDATES, CHUNK = 500, 100
SPREADS = (0.05, 0.2, 0.5, 1.5)
"""Candidate standard deviations of the log of load over forecast. With the largest nearly all servers stay on."""


class AdaptiveTrainer(Trainer):
    """Trains ``grbal``, a planner that adapts its model of batches and load, in about a minute, and judges it.

    Args:
        workload: the workload with its domain model.
        problem: problem on which policies are scored and judged.
        request: the training request; its budget is a number of decisions.
        champion: the serving artifact, which the planner must beat; None: there is none.
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
        """The training's two stages: gathering transitions, and learning from them."""
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
        tasks, steps = gather_tasks(vary_world(self._layout, self._model, EPISODES, seed), seed)
        self._worlds.append(tasks)
        self._watched += steps
        return self._watched >= self._budget

    def _learn(self) -> bool:
        if self._learner is None:
            self._learner = MetaLearner(join_tasks(self._worlds), self.request.seed)
        self._loss = self._learner.advance(CHUNK)
        self._seconds = perf_counter() - self._begun
        return self._updates >= UPDATES

    def conclude(self) -> TrainedAgent:
        """Choose the planner's ``spread`` (uncertainty of the load) with the highest score, and judge the planner with
        it.

        Raises:
            IncompatibleArtifact: the champion can't be read, or was made for another kind or spec.
        """
        assert self._learner is not None  # noqa: S101  (the stages are done)
        pace, load = self._learner.fit(), fit_load(join_tasks(self._worlds), per_part(self._layout, self._model))
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
        """Return no bytes, since a resumed training starts from the beginning."""
        return b""

    @override
    def restore(self, data: bytes) -> None:
        raise ValueError(f"nothing is kept of a training of {ALGORITHM}, {len(data)} bytes were given")

    @override
    def close(self) -> None: ...


def world_seed(seed: int, number: int) -> int:
    """Derive the seed of a training's world of index ``number`` from the training's ``seed``."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def per_part(layout: Layout, model: ServiceModel) -> NDArray[np.float64]:
    """Return the usual number of requests of each of U users per part of a control interval, [U]."""
    return usual(model) * width(layout)


def planner(
    layout: Layout, model: ServiceModel, pace: Fit, load: LoadFit, spread: float, steps: int = 1
) -> AdaptivePlanner:
    """Assemble the adaptive planner from its fitted parts.

    Args:
        layout, model: the workload's layout and domain model.
        pace, load: fitted network of batches' pace, and fitted forecast of the load.
        spread: standard deviation of the natural log of load over forecast, by which servers are kept on.
        steps: number of gradient steps by which the network adapts.
    """
    counts = per_part(layout, model)
    dynamics = Dynamics(pace.start, pace.rates, pace.errors["adapted"], load.error, load.weights, counts, steps)
    config = {"algorithm": ALGORITHM, "steps": steps, "spread": spread}
    return AdaptivePlanner(config, dynamics)
