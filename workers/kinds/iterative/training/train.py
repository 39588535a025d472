"""The training of an agent in this process: trials learn in chunks, the planner competes, the best one is judged.

A `Training` is resumable: between chunks `checkpoint` gives bytes from which a new one goes on. What it
publishes is the artifact that was judged, never a learner itself.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.training.planned import Planned, make_plan
from workers.kinds.iterative.training.request import PLANNER, Request, Start, Untrainable, entries
from workers.kinds.iterative.training.trial import Candidate, Trial
from workers.kinds.iterative.training.verdict import Contender, TrainedAgent, conclude, validation
from workers.learning.bracket import Bracket, Decision, Standing
from workers.learning.execution import Executor
from workers.learning.execution import checkpoint as blob

COMPARING = 0.9  # share of the progress bar that is learning; the rest is comparing and judging
JUDGING_SECONDS = 2.0  # about what that takes


class Training:
    """One training job.

    Args:
        spec: the workload's.
        table: its domain model.
        request: what is asked for.
        checkpoint: what `checkpoint` gave for the same arguments, to go on from; or None.
        champion: the artifact that answers now; it must be beaten to be replaced.
        clock: seconds from any origin.

    Raises:
        Untrainable: the algorithm is unknown, or the planner can't plan this workload.
        ExecutionError, BackendError: it can't be run in the way that was asked for.
    """

    def __init__(
        self,
        spec: Spec,
        table: ModelTable,
        request: Request,
        checkpoint: bytes | None = None,
        *,
        champion: bytes | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.spec, self.table, self.request, self.champion, self.clock = spec, table, request, champion, clock
        self.court = validation(spec, table, request)
        found = entries(request)
        self.bracket = Bracket(len(found)) if found else None
        self.trials = [Trial(spec, table, request, entry, Bracket(len(found)), clock) for entry in found]
        self.standings = [Standing(entry) for entry in found]
        self.candidates: list[Candidate | None] = [None] * len(found)
        self._planned: Planned | None = None
        self._result: TrainedAgent | None = None
        if checkpoint:
            self._restore(checkpoint)

    @property
    def done(self) -> bool:
        """Whether `result` is there."""
        return self._result is not None

    @property
    def learning(self) -> bool:
        """Whether there is still something to learn."""
        return self._at_work is not None

    @property
    def learner(self) -> Executor | None:
        """What runs the trial that is at work, or else the first one; None where nothing is learned."""
        at_work = self._at_work
        return self.trials[at_work or 0].runner if self.trials else None

    @property
    def _at_work(self) -> int | None:
        """The trial that learns next: of those that go on, the first that has come least far."""
        present = [i for i, standing in enumerate(self.standings) if standing.ended is None]
        return min(present, key=lambda i: self.standings[i].rungs, default=None)

    @property
    def progress(self) -> float:
        """Share of the whole that is done, 0 to 1."""
        if self.done:
            return 1.0
        if self.learning:
            return COMPARING * self._learned
        return COMPARING if self.trials or self._planned is not None else 0.0

    @property
    def _learned(self) -> float:
        work = self.bracket.work if self.bracket is not None else 1.0
        return min(1.0, sum(trial.share for trial in self.trials) / work)

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to go; None before the first chunk."""
        at_work = self._at_work
        if self.done or at_work is None or self.bracket is None:
            return 0.0
        whole = self.trials[at_work].budget_seconds
        return None if whole is None else (1.0 - self._learned) * self.bracket.work * whole + JUDGING_SECONDS

    @property
    def live(self) -> dict[str, Any]:
        """Figures for a progress bar: phase, and the last chunk of the trial at work."""
        at_work = self._at_work
        phase = "learning" if at_work is not None else "done" if self.done else "judging"
        told = {"phase": phase, "algorithm": self.request.algorithm, "trials": len(self.trials)}
        return told if not self.trials else told | {"trial": at_work or 0} | self.trials[at_work or 0].live

    def advance(self) -> None:
        """Do one chunk: about half a second of learning, a plan, or the judging at the end."""
        at_work = self._at_work
        if self._planned is None and self._plans_first:
            self._planned = make_plan(Layout(self.spec), self.table, self.court)
        elif at_work is not None:
            self._learn(at_work)
        else:
            self._result = self._judged()
            self.close()

    @property
    def _plans_first(self) -> bool:
        return self.request.plans or self.request.imitate == PLANNER

    def _learn(self, at_work: int) -> None:
        trial, bracket = self.trials[at_work], self.trials[at_work].bracket
        trial.prepare(self._planned)
        trial.advance()
        rungs = self.standings[at_work].rungs
        if trial.share < bracket.shares[rungs]:
            return
        tried, before = trial.compared(self.court), self.candidates[at_work]
        kept = tried if before is None or tried.validation > before.validation else before
        self.candidates[at_work] = kept
        self.standings[at_work] = Standing(trial.entry, rungs + 1, kept.validation)
        self._compare(bracket)

    def _compare(self, bracket: Bracket) -> None:
        """Stop the losers, once every trial that is still there has reached the same rung."""
        if len({standing.rungs for standing in self.standings if standing.ended is None}) > 1:
            return
        rival = self._planned.rival if self._planned is not None and self.request.plans else None
        self._stop(bracket.decide(self.standings, rival))

    def _stop(self, decision: Decision) -> None:
        for i, reason in decision.stopped.items():
            known = self.standings[i]
            self.standings[i] = Standing(known.entry, known.rungs, known.score, reason)

    def _judged(self) -> TrainedAgent:
        planned = self._planned or make_plan(Layout(self.spec), self.table, self.court)
        contenders = [self._contender(i) for i in range(len(self.trials))]
        return conclude(self.spec, self.table, self.request, contenders, planned, self.champion, self.clock)

    def _contender(self, i: int) -> Contender:
        trial, kept = self.trials[i], self.candidates[i]
        report = trial.report | ({} if kept is None else {"strength": kept.strength})
        return Contender(self.standings[i], trial.share, None if kept is None else kept.artifact, report)

    def result(self) -> TrainedAgent:
        """What was judged; raises RuntimeError while there is something left to do."""
        if self._result is None:
            raise RuntimeError("the training is not done: call advance() until `done`")
        return self._result

    def close(self) -> None:
        """Let go of processes and memory."""
        for trial in self.trials:
            trial.close()

    def checkpoint(self) -> bytes:
        """Bytes to go on from; empty where nothing is learned."""
        if not self.trials:
            return b""
        files = {f"trial.{i}": trial.checkpoint() for i, trial in enumerate(self.trials)}
        files |= {f"kept.{i}": kept.artifact for i, kept in enumerate(self.candidates) if kept is not None}
        if self._planned is not None:
            files["planned"] = self._planned.pack()
        told = [[standing.rungs, standing.score, standing.ended] for standing in self.standings]
        strengths = [None if kept is None else [kept.validation, kept.strength] for kept in self.candidates]
        arrays = {name: np.frombuffer(data, np.uint8) for name, data in files.items()}
        return blob.pack(arrays, {"standings": told, "kept": strengths})

    def _restore(self, data: bytes) -> None:
        arrays, values = blob.unpack(data)
        for i, (trial, told, kept) in enumerate(zip(self.trials, values["standings"], values["kept"], strict=True)):
            trial.restore(arrays[f"trial.{i}"].tobytes())
            self.standings[i] = Standing(trial.entry, *told)
            if kept is not None:
                self.candidates[i] = Candidate(arrays[f"kept.{i}"].tobytes(), *kept)
        if "planned" in arrays:
            self._planned = Planned.unpack(arrays["planned"].tobytes())


__all__ = ["Request", "Start", "TrainedAgent", "Training", "Untrainable"]
