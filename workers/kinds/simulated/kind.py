"""A base class for the learning half of kinds whose decisions are numbered actions in a simulator.

A kind inherits ``SimulatedKind`` and writes ``name``, ``fit`` and ``world``, and ``baselines`` where its layout has
none; it may override anything else. Its agents are those of ``workers.learning``, several of which may compete, and are
judged against the baselines. Evaluations have all levels; L3 runs on a domain model of held-out executions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workers.inputs import Conditions, Workload
from workers.kinds.contract import Competing, Evaluation, FittedModel, LearnedKind
from workers.kinds.simulated.problem import SimulatedEnvironment

if TYPE_CHECKING:
    from workers.evaluation.protocol import KeptBack
    from workers.inputs import HoldOut, LoggedRun
    from workers.kinds.simulated.problem import SimulatedProblem
    from workers.learning.simulator import Simulator
    from workers.learning.training.driver import Trainer, TrainingProblem
    from workers.learning.training.request import Request

FEWEST_HELD_OUT = 3
NOT_SCORED = "agents of this kind can't be scored on runs that were logged"


class SimulatedKind(SimulatedEnvironment, LearnedKind, Competing):
    """The base class of a simulated kind's learning half: a subclass writes ``name``, ``fit`` and ``world``.

    Attributes:
        own: names of further algorithms that the subclass's ``trainer`` handles; sweeps make no trials of them.
    """

    reads_runs = False
    own: Sequence[str] = ()

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        """Fit a domain model; this base class only raises NotImplementedError."""
        raise NotImplementedError

    @property
    def algorithms(self) -> Sequence[str]:
        """Names that a training request may choose: ``auto``, the planner, the registered algorithms, and ``own``."""
        from workers.learning.algorithms import registry
        from workers.learning.training.request import PLANNER

        return ("auto", PLANNER, *registry.names(), *self.own)

    def simulator(self, workload: Workload, conditions: Conditions) -> Simulator:
        """Make the kind's world; for learners, wrapped so that every episode has a fresh seed."""
        from workers.evaluation.statistics import Level
        from workers.evaluation.wrappers import wrap_world

        world = self.world(workload, conditions)
        return wrap_world(world, Level.TRAIN, conditions.seed) if conditions.purpose == "learning" else world

    def training(self, workload: Workload, request: Request) -> TrainingProblem:
        """Make the training problem in the kind's simulator, judged against the kind's baselines."""
        from workers.kinds.simulated.training import SimulatedTraining

        return SimulatedTraining(self, workload, request.seed)

    def online(self, workload: Workload, request: Request, window: bytes) -> TrainingProblem:
        """Make the training problem over a packed ``window`` of recent runs, which simulators get as an option."""
        from workers.kinds.simulated.training import WindowTraining

        return WindowTraining(self, workload, request.seed, window, request.look)

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> Trainer:
        """Make the trainer in which the algorithms that the request names compete.

        Raises:
            Untrainable: no agent can be trained for this request.
            ExecutionError, BackendError: the executor or device cannot run it.
        """
        from workers.learning.training.competition import Competition

        return Competition(self.training(workload, request), request, champion)

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """Prepare an evaluation whose level L3 runs on a domain model fitted to the held-out executions alone.

        If that fit raises an EstimationError, the evaluation has no L3, and its report states the reason.
        """
        from workers.estimators.base import EstimationError
        from workers.evaluation.protocol import NOT_REQUESTED, not_requested

        if held_out is None:
            return Evaluation(self.problem(workload, (), NOT_REQUESTED), not_requested())
        kept_back = self.kept_back(workload, held_out, seed)
        try:
            other = self.fit(replace(workload, model=b"", samples=kept_back.samples), seed)
        except EstimationError as error:
            reason = f"what is held out can't carry a domain model of its own ({kept_back.note}): {error}"
            return Evaluation(self.problem(workload, (), reason), kept_back.chosen.report(reason, None))
        count, unseen = len(kept_back.chosen.names), kept_back.chosen.unseen
        note = f"L3 follows a domain model of {kept_back.note}; {unseen} of {count} no agent's model was fitted on."
        return Evaluation(self.problem(workload, (other.model,), ""), kept_back.chosen.report(None, note))

    def kept_back(self, workload: Workload, held_out: HoldOut, seed: int) -> KeptBack:
        """Choose the executions to hold out for level L3 (unseen data): a share of all, at least three if possible."""
        from workers.evaluation.protocol import KeptBack, choose

        data = dict(workload.samples)
        chosen = choose([*data], held_out, seed, fewest=FEWEST_HELD_OUT)
        sources = [(name, data[name]) for name in chosen.names]
        return KeptBack(chosen, sources, f"{len(sources)} executions")

    def problem(self, workload: Workload, held_out: Sequence[bytes], without: str) -> SimulatedProblem:
        """Make the evaluation's problem; ``held_out``: domain models as bytes; ``without``: why there are none."""
        from workers.kinds.simulated.problem import SimulatedProblem

        return SimulatedProblem(self, workload, held_out, without)

    def off_policy(self, workload: Workload, artifact: bytes, runs: Sequence[LoggedRun]) -> dict[str, Any]:
        """Return ``{"reason": …}`` only, because agents of this kind can't be scored on logged runs."""
        del workload, artifact, runs
        return {"reason": NOT_SCORED}
