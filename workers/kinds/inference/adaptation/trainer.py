"""The training of an adaptive planner, of algorithm ``grbal``: gather transitions, learn to adapt, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.adaptive import ALGORITHM, AdaptivePlanner
from app.kinds.inference.dynamics import Dynamics, width
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from workers.evaluation.arena import Bare, play
from workers.evaluation.levels import Level
from workers.inputs import Conditions, Workload
from workers.kinds.inference.adaptation.conditions import usual, varied
from workers.kinds.inference.adaptation.experience import Tasks, gathered, joined
from workers.kinds.inference.adaptation.load import LoadFit, fit_load
from workers.kinds.inference.adaptation.meta import Fit, MetaLearner
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.learning.bracket import Entry, TrialRecord
from workers.learning.training.conclude import Contender, conclude
from workers.learning.training.driver import Stage, TrainedAgent
from workers.learning.training.problem import TrainingProblem
from workers.learning.training.request import Request

EPISODES = 64  # of a world
STEPS = 200_000  # decisions that are watched, where no budget is given: it takes less than a policy does
UPDATES, CHUNK = 500, 100
SPREADS = (0.05, 0.2, 0.5, 1.5)
"""Of the log of the load over what is expected, for which servers are kept on; with the largest nearly all are."""


class AdaptiveTrainer:
    """See ``Trainer``; a minute's work, which whoever resumes begins anew.

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
        """See ``Trainer``: to gather transitions, and to learn from them."""
        return (
            Stage("gathering", 0.7, self._gather, lambda: self._watched / self._budget),
            Stage("learning", 0.3, self._learn, lambda: self._updates / UPDATES),
        )

    @property
    def live(self) -> Mapping[str, Any]:
        """See ``Trainer``."""
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
        """See ``Trainer``: judged as every agent is."""
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
        """See ``Trainer``: nothing, it begins anew."""
        return b""

    def restore(self, data: bytes) -> None:
        """See ``Trainer``."""
        raise ValueError(f"nothing is kept of a training of {ALGORITHM}, {len(data)} bytes were given")

    def close(self) -> None:
        """See ``Trainer``."""


def adaptive_policies(
    layout: Layout, model: ServiceModel, budget: int, seed: int, steps: Sequence[int] = (1,)
) -> dict[int, AdaptivePlanner]:
    """Policies that adapt by so many steps of the gradient, each learned for that from the same transitions.

    The spread is chosen for one step, in the domain model's own world, and all have it.

    Args:
        layout: of the workload.
        model: its domain model.
        budget: decisions that are watched.
        seed: of everything that is drawn.
        steps: of the gradient, of each policy; 0: nothing adapts.
    """
    worlds, watched = list[Tasks](), 0
    while watched < budget:
        own = world_seed(seed, len(worlds))
        tasks, decisions = gathered(varied(layout, model, EPISODES, own), own)
        worlds.append(tasks)
        watched += decisions
    together = joined(worlds)
    load, fits = fit_load(together, per_part(layout, model)), dict[int, Fit]()
    for count in steps:
        learner = MetaLearner(together, seed, count)
        learner.advance(UPDATES)
        fits[count] = learner.fit()
    first = next(iter(steps))
    spread = max(
        SPREADS, key=lambda one: _return(layout, model, planner(layout, model, fits[first], load, one, first), seed)
    )
    return {count: planner(layout, model, fit, load, spread, count) for count, fit in fits.items()}


def _return(layout: Layout, model: ServiceModel, policy: AdaptivePlanner, seed: int) -> float:
    """Mean over episodes of the domain model."""
    world = InferenceWorld(layout, [model], Conditions(EPISODES, seed))
    return float(play(world, Level.SEEDS, seed, Bare(policy)).returns.mean())


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
