"""The training of an adaptive planner, of algorithm ``grbal``: gather transitions, learn to adapt, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from app.kinds.inference.adaptive import ALGORITHM, AdaptivePlanner
from app.kinds.inference.dynamics import NETWORKS, Dynamics
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.recent import PARTS_OF_INTERVAL
from workers.inputs import Workload
from workers.kinds.inference.adaptation.conditions import usual, varied
from workers.kinds.inference.adaptation.experience import Tasks, gathered, joined
from workers.kinds.inference.adaptation.meta import Fit, MetaLearner
from workers.learning.bracket import Entry, TrialRecord
from workers.learning.training.conclude import Contender, conclude
from workers.learning.training.driver import Stage, TrainedAgent
from workers.learning.training.problem import TrainingProblem
from workers.learning.training.request import Request

EPISODES = 64  # of a world
STEPS = 200_000  # decisions that are watched, where no budget is given: it takes less than a policy does
UPDATES, CHUNK = 600, 100  # of each network
Gathered = Mapping[str, Tasks]


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
        self._usual = usual(self._model) * self._layout.spec.control_seconds / PARTS_OF_INTERVAL
        self._worlds: list[Gathered] = []
        self._learners: dict[str, MetaLearner] = {}
        self._begun, self._seconds = perf_counter(), 0.0
        self._watched, self._loss = 0, 0.0

    @property
    def stages(self) -> Sequence[Stage]:
        """See ``Trainer``: to gather transitions, and to learn from them."""
        return (
            Stage("gathering", 0.7, self._gather, lambda: self._watched / self._budget),
            Stage("learning", 0.3, self._learn, lambda: self._updates / (UPDATES * len(NETWORKS))),
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
        return sum(learner.updates for learner in self._learners.values())

    def _gather(self) -> bool:
        seed = int(np.random.SeedSequence([self.request.seed, len(self._worlds)]).generate_state(1)[0])
        tasks, steps = gathered(varied(self._layout, self._model, EPISODES, seed), self._usual, seed)
        self._worlds.append(tasks)
        self._watched += steps
        return self._watched >= self._budget

    def _learn(self) -> bool:
        if not self._learners:
            tasks = {name: joined([one[name] for one in self._worlds]) for name in NETWORKS}
            self._learners = {name: MetaLearner(tasks[name], self.request.seed) for name in NETWORKS}
        name = min(NETWORKS, key=lambda one: self._learners[one].updates)
        self._loss = self._learners[name].advance(CHUNK)
        self._seconds = perf_counter() - self._begun
        return self._updates >= UPDATES * len(NETWORKS)

    def conclude(self) -> TrainedAgent:
        """See ``Trainer``: judged as every agent is."""
        fits = {name: learner.fit() for name, learner in self._learners.items()}
        artifact = self.problem.save(planner(self._layout, self._usual, fits))
        entry = Entry(ALGORITHM, self.request.seed)
        record = TrialRecord(entry, 1, self.problem.score(artifact))
        contender = Contender(record, 1.0, artifact, self._report(fits))
        return conclude(self.problem, self.request, [contender], self.problem.plan(), self.champion)

    def _report(self, fits: Mapping[str, Fit]) -> dict[str, Any]:
        return {
            "config": {"networks": {name: dict(fit.errors) for name, fit in fits.items()}},
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


def planner(layout: Layout, usual: Any, fits: Mapping[str, Fit], steps: int = 1) -> AdaptivePlanner:
    """The policy of two networks that were learned.

    Args:
        layout: of the workload.
        usual: requests of each user in a part of a control interval, [U].
        fits: by network.
        steps: of the gradient.
    """
    dynamics = Dynamics(
        {name: fit.start for name, fit in fits.items()},
        {name: fit.rates for name, fit in fits.items()},
        {name: fit.age for name, fit in fits.items()},
        {name: fit.errors["adapted"] for name, fit in fits.items()},
        np.asarray(usual, np.float64),
        steps,
    )
    width = layout.spec.control_seconds / PARTS_OF_INTERVAL
    return AdaptivePlanner({"algorithm": ALGORITHM, "steps": steps, "width": width}, dynamics)
