"""Competition of trials in one process: successive halving at rungs, a plan as competitor, a verdict on the best."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from workers.learning.execution import Executor
from workers.learning.execution import base as blob
from workers.learning.training.conclude import Contender, conclude, worthwhile, yardsticks
from workers.learning.training.driver import PlannedPolicy, Stage, TrainedAgent, Trainer, TrainingProblem
from workers.learning.training.request import Bracket, Request, TrialRecord, entries
from workers.learning.training.trial import Candidate, Trial

JUDGING_SECONDS = 2.0  # approximate duration of the verdict


class Competition(Trainer):
    """A training as competition of trials (algorithm and seed), compared at shares of their budget, and of a plan.

    Args:
        problem: the training problem.
        request: the training request.
        champion: artifact of the current champion, which has to be beaten; None: a heuristic is in use.
        clock: function that returns monotonic seconds.

    Raises:
        Untrainable: the algorithm is unknown.
        ExecutionError, BackendError: the executor or device cannot run it.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        request: Request,
        champion: bytes | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.problem, self.request, self.champion, self.clock = problem, request, champion, clock
        result = entries(request, problem.competing)
        self.bracket = Bracket(len(result)) if result else None
        self.trials = [Trial(problem, request, entry, Bracket(len(result)), clock) for entry in result]
        self.records = [TrialRecord(entry) for entry in result]
        self.candidates: list[Candidate | None] = [None] * len(result)
        self.yardsticks: dict[str, float] = {}
        self._planned: PlannedPolicy | None = None

    @property
    def stages(self) -> Sequence[Stage]:
        """Stages: planning and tuning without learning; measuring baselines, in a long training; learning."""
        planning = [Stage("planning", 0.0, self._plan, lambda: 0.0)]
        if not self.trials:
            return planning
        measuring = [Stage("measuring", 0.0, self._measure, lambda: 0.0)] if worthwhile(self.request) else []
        return (*planning, *measuring, Stage("learning", 1.0, self._learn, lambda: self._learning_progress))

    @property
    def learner(self) -> Executor | None:
        """Executor of the trial to advance next, or else of the first one; None without trials."""
        return self.trials[self._at_work or 0].runner if self.trials else None

    @property
    def _at_work(self) -> int | None:
        """Index of the trial to advance next: of those not stopped, the one least often compared; None if all are."""
        present = [i for i, record in enumerate(self.records) if record.ended is None]
        return min(present, key=lambda i: self.records[i].rungs, default=None)

    @property
    def _learning_progress(self) -> float:
        work = self.bracket.work if self.bracket is not None else 1.0
        return min(1.0, sum(trial.share for trial in self.trials) / work)

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None before the first chunk."""
        at_work = self._at_work
        if at_work is None or self.bracket is None:
            return 0.0
        whole = self.trials[at_work].budget_seconds
        return None if whole is None else (1.0 - self._learning_progress) * self.bracket.work * whole + JUDGING_SECONDS

    @property
    def live(self) -> dict[str, Any]:
        """Progress figures: algorithm, number of trials, baselines' mean returns, statistics of the present trial."""
        at_work = self._at_work or 0
        live: dict[str, Any] = {"algorithm": self.request.algorithm, "trials": len(self.trials)}
        live |= {"yardsticks": self.yardsticks} if self.yardsticks else {}
        return live if not self.trials else live | {"trial": at_work} | self.trials[at_work].live

    def _plan(self) -> bool:
        self._planned = self.problem.plan(self.request.tuning_budget, self.request.equivalence_margin)
        return True

    def _measure(self) -> bool:
        self.yardsticks = yardsticks(self.problem, self.request, self._planned)
        return True

    def _learn(self) -> bool:
        """Learn for a chunk, and compare trials at a rung (a share of the budget); return whether the stage is done."""
        at_work, planned = self._at_work, self._planned
        if at_work is None or (planned is not None and planned.nothing_to_win and not self.request.force):
            return True
        trial, bracket = self.trials[at_work], self.trials[at_work].bracket
        trial.prepare(self._planned)
        trial.advance()
        rungs = self.records[at_work].rungs
        if trial.share >= bracket.shares[rungs]:
            tried, before = trial.compared(), self.candidates[at_work]
            best = tried if before is None or tried.validation > before.validation else before
            self.candidates[at_work] = best
            self.records[at_work] = TrialRecord(trial.entry, rungs + 1, best.validation)
            self._compare(bracket)
        return self._at_work is None

    def _compare(self, bracket: Bracket) -> None:
        """Stop the worst trials, once all remaining ones have been compared equally often."""
        if len({record.rungs for record in self.records if record.ended is None}) > 1:
            return
        for i, reason in bracket.decide(self.records).stopped.items():
            known = self.records[i]
            self.records[i] = TrialRecord(known.entry, known.rungs, known.score, reason)

    def conclude(self) -> TrainedAgent:
        """Choose the best of all trials and the plan, judge it against baselines and champion, and return it.

        Raises:
            Untrainable: there is nothing to publish.
        """
        planned = self._planned or self.problem.plan()
        each = zip(self.trials, self.records, self.candidates, strict=True)
        contenders = [
            Contender(record, trial.share, None if best is None else best.artifact, trial.report)
            for trial, record, best in each
        ]
        return conclude(self.problem, self.request, contenders, planned, self.champion, self.clock)

    def close(self) -> None:
        """Release processes and memory of all trials; can be called twice."""
        for trial in self.trials:
            trial.close()

    def checkpoint(self) -> bytes:
        """Serialise the competition to bytes that `restore` reads; empty without trials."""
        if not self.trials:
            return b""
        files = {f"trial.{i}": trial.checkpoint() for i, trial in enumerate(self.trials)}
        files |= {f"kept.{i}": best.artifact for i, best in enumerate(self.candidates) if best is not None}
        if self._planned is not None:
            files["planned"] = self._planned.pack()
        rows = [[record.rungs, record.score, record.ended] for record in self.records]
        scores = [None if candidate is None else candidate.validation for candidate in self.candidates]
        arrays = {name: np.frombuffer(data, np.uint8) for name, data in files.items()}
        return blob.pack(arrays, {"standings": rows, "kept": scores})

    def restore(self, data: bytes) -> None:
        """Resume from a checkpoint of the same request; raises CheckpointError if ``data`` is no such checkpoint."""
        arrays, values = blob.unpack(data)
        for i, (trial, row, best) in enumerate(zip(self.trials, values["standings"], values["kept"], strict=True)):
            trial.restore(arrays[f"trial.{i}"].tobytes())
            self.records[i] = TrialRecord(trial.entry, *row)
            if best is not None:
                self.candidates[i] = Candidate(arrays[f"kept.{i}"].tobytes(), float(best))
        if "planned" in arrays:
            self._planned = PlannedPolicy.unpack(arrays["planned"].tobytes())
