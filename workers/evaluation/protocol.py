"""The evaluation protocol in resumable chunks, and the choice of held-out executions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.policy import Policy
from workers.evaluation.arena import Player, Scores, play
from workers.evaluation.candidate import (
    OPTIMUM,
    RANDOM,
    TUNER,
    Candidate,
    RandomLegal,
    Settings,
    TuningResult,
    list_policies,
    tune,
    tuner,
)
from workers.evaluation.judge import check
from workers.evaluation.problem import Problem
from workers.evaluation.report.schedules import HeatMap
from workers.evaluation.statistics import Level, Record, Records
from workers.evaluation.summary import Evaluation, Summary
from workers.inputs import HoldOut, Samples

__all__ = ["Candidate", "Evaluation", "EvaluationRun", "Settings", "evaluate"]

CHUNK_SECONDS = 0.5
DEFAULT = Settings()


class Unit(NamedTuple):
    """A unit of work: “playing” a policy at a level under the seed of this index, “tuning”, “checking” for aliasing."""

    phase: str
    level: Level | None = None
    policy: str | None = None
    seed: int = 0


def evaluate(
    problem: Problem,
    candidates: Sequence[Candidate],
    settings: Settings = DEFAULT,
    progress: Callable[[float, dict[str, Any]], None] | None = None,
) -> Evaluation:
    """Evaluate ``candidates``; call ``progress`` after each chunk with share done (0 to 1), phase, level and policy.

    Raises:
        ValueError: two policies of one name, or no candidate.
        IncompatibleArtifact: an artifact is unreadable, or of another layout.
    """
    run = EvaluationRun(problem, candidates, settings)
    while not run.done:
        run.advance()
        if progress is not None:
            progress(run.progress, run.live)
    return run.result()


class EvaluationRun:
    """One evaluation, in chunks of about half a second.

    Args:
        problem: the workload.
        candidates: the agents to evaluate.
        settings: size and statistics.
        checkpoint: bytes from ``checkpoint`` of a run with the same arguments, to resume from; None: begin anew.
        clock: function that returns monotonic seconds.

    Raises:
        ValueError: two policies of one name, no candidate, or a checkpoint of another evaluation.
        IncompatibleArtifact: an artifact is unreadable, or of another layout.
    """

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[Candidate],
        settings: Settings = DEFAULT,
        checkpoint: bytes | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.problem, self.settings, self.clock = problem, settings, clock
        self.entered = list(candidates)
        self.candidates = {candidate.name: candidate for candidate in candidates if not candidate.outdated}
        self.everybody = list_policies(problem, candidates)
        self._players = {c.name: [problem.player(one) for one in c.contenders] for c in self.candidates.values()}
        self.seeds = {
            level: np.random.SeedSequence([settings.seed, level is not Level.TRAIN]).generate_state(settings.seeds)
            for level in Level
        }
        self.units = self._plan_units()
        signature = [problem.kind, problem.name, settings.as_dict(), [list(one) for one in self.everybody]]
        self.records = Records(signature, checkpoint)
        self._result: Evaluation | None = None

    def _plan_units(self) -> list[Unit]:
        """Return all units of work in order; none where every candidate has to be trained again before it is played."""
        if not self.candidates:
            return []
        levels = [one for one in Level if (self.settings.skip_reason(one) or self.problem.unavailable(one)) is None]
        games = [
            Unit("playing", level, one.name, seed)
            for level in levels
            for one in self.everybody
            for seed in range(self.settings.seeds)
        ]
        return [Unit("tuning", policy=TUNER), *games, *(Unit("checking", policy=name) for name in self.candidates)]

    @property
    def done(self) -> bool:
        """Whether the evaluation has ended and ``result`` is available."""
        return self._result is not None

    @property
    def progress(self) -> float:
        """Share of the work that is done, 0 to 1."""
        return 1.0 if self.done else len(self.records) / (len(self.units) + 1)

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None before the first chunk."""
        if not len(self.records):
            return None
        return 0.0 if self.done else self.records.seconds * (1 - self.progress) / self.progress

    @property
    def live(self) -> dict[str, Any]:
        """Progress figures: phase, level and policy of the next unit, and the number of units done and in all."""
        done = len(self.records)
        unit = self.units[done] if done < len(self.units) else Unit("done" if self.done else "summing up")
        level = None if unit.level is None else unit.level.label
        return {"phase": unit.phase, "level": level, "policy": unit.policy, "units": done, "of": len(self.units)}

    def advance(self) -> None:
        """Work for about half a second: play some units, or compute the summary after the last one."""
        begun = self.clock()
        if len(self.records) < len(self.units):
            self.records.append(self._work_on(self.units[len(self.records)]))
            while len(self.records) < len(self.units) and self.clock() - begun < CHUNK_SECONDS:
                self.records.append(self._work_on(self.units[len(self.records)]))
        else:
            self._result = self._summed_up()
        self.records.seconds += self.clock() - begun

    def checkpoint(self) -> bytes:
        """Serialise the records so far to bytes from which a run with the same arguments resumes."""
        return self.records.to_bytes()

    def result(self) -> Evaluation:
        """Return the evaluation's result; raises RuntimeError if the evaluation has not ended."""
        if self._result is None:
            raise RuntimeError("the evaluation is not done: call advance() until `done`")
        return self._result

    def _work_on(self, unit: Unit) -> Record:
        if unit.phase == "tuning":
            seed = int(self.seeds[Level.TRAIN][0])
            tuned = tune(self.problem, self.settings.trials, self.settings.tuning_episodes, seed)
            return Record(details=tuned.as_dict())
        if unit.phase == "checking":
            return Record(details=self._check_candidate(self.candidates[str(unit.policy)]))
        return self._play_unit(unit)

    def _play_unit(self, unit: Unit) -> Record:
        level, name, settings = Level.FIXED if unit.level is None else unit.level, str(unit.policy), self.settings
        player = self._player(name, level, unit.seed)
        if player is None:
            return Record()
        heat = HeatMap(self.problem) if level is Level.SEEDS and name in self.candidates else None
        world = self.problem.world(1 if level is Level.FIXED else settings.episodes, settings.seed)
        watch = None if heat is None else heat.watch
        scores: Scores = play(world, level, int(self.seeds[level][unit.seed]), player, watch)
        details = {"terms": scores.terms.tolist(), "guarded": scores.guarded}
        return Record(scores.returns, scores.outcomes.astype(np.float32), None if heat is None else heat.sums, details)

    def _player(self, name: str, level: Level, seed: int) -> Player | None:
        """Return the player of the policy ``name`` at a level for the seed with index ``seed``; None if unavailable."""
        if name in self._players:
            contenders = self._players[name]
            return contenders[seed % len(contenders)]
        policy: Policy | None
        if name == OPTIMUM:
            policy = self.problem.optimum(level, self.settings.seed).policy
        elif name == TUNER:
            policy = tuner(self.problem, self._tuned_parameters)
        else:
            policy = RandomLegal() if name == RANDOM else self.problem.heuristics[name]
        return None if policy is None else self.problem.player(policy)

    @cached_property
    def _tuned_parameters(self) -> TuningResult:
        return TuningResult.from_dict(self.records[0].details)

    def _check_candidate(self, candidate: Candidate) -> dict[str, Any]:
        seed, encoder = int(self.seeds[Level.TRAIN][-1]), self.problem.encoder(candidate.contenders[0])
        return check(self.problem, encoder, seed=seed, episodes=self.settings.demonstrations)

    def _summed_up(self) -> Evaluation:
        played: dict[Level, dict[str, list[Record]]] = {}
        checked: dict[str, dict[str, Any]] = {}
        for unit, record in zip(self.units, self.records, strict=True):
            if unit.phase == "checking":
                checked[str(unit.policy)] = record.details
            elif unit.level is not None and record.returns is not None:
                played.setdefault(unit.level, {}).setdefault(str(unit.policy), []).append(record)
        summary = Summary(self.problem, self.entered, self.everybody, self.settings, played)
        tuned = self.records[0].details if self.candidates else None
        return Evaluation(summary.document(checked, tuned, self.records.seconds))


# Choice of the samples that an evaluation holds out for L3, and its report.


MOST_NAMES = 200
NOT_REQUESTED = "not requested"


class HeldOutChoice(NamedTuple):
    """The parts of the samples that an evaluation holds out.

    Attributes:
        names: names of the held-out executions or users.
        unseen: how many of ``names`` no candidate has learned from.
        of: what ``names`` are, in the plural: "executions" or "users".
    """

    names: tuple[str, ...]
    unseen: int
    of: str = "executions"

    def report(self, reason: str | None, note: str | None) -> dict[str, Any]:
        """Return the report's JSON entry: number and names of held-out samples, how many are unseen, reason and note.

        ``reason``: why level L3, which needs held-out samples, is unavailable (None: it is not); ``note``: a remark.
        """
        names = list(self.names[:MOST_NAMES])
        count = {"of": self.of, self.of: len(self.names)}
        return {**count, "unseen": self.unseen, "names": names, "reason": reason, "note": note}


class KeptBack(NamedTuple):
    """The held-out executions, the samples to fit their domain model on, and a description of these in words."""

    chosen: HeldOutChoice
    samples: Samples
    note: str


def not_requested() -> dict[str, Any]:
    """Return the JSON entry, on held-out samples, of an evaluation without level L3, which needs them."""
    return HeldOutChoice((), 0).report(NOT_REQUESTED, None)


def choose(
    names: Sequence[str],
    request: HoldOut,
    seed: int,
    *,
    fewest: int = 1,
    most: int | None = None,
    carries: Callable[[Collection[str]], bool] = bool,
) -> HeldOutChoice:
    """Choose the executions to hold out: those named in the request, else a random share, unseen ones first.

    Args:
        names: names of all executions, oldest first.
        request: executions or share to hold out.
        seed: seed of the random order.
        fewest: least number of executions, if the request gives a share.
        most: largest number of executions; None: no limit.
        carries: function that returns whether executions of these names suffice for a model; a share grows until they
            do, up to half of all.
    """
    if request.executions is not None:
        chosen = [name for name in request.executions if name in set(names)]
    else:
        wanted = min(len(names), max(fewest, round(request.share * len(names))))
        ordered = draw_order(names, request.unseen, seed)
        sizes = range(wanted, max(wanted, len(names) // 2) + 1)
        chosen = ordered[: next((size for size in sizes if carries(ordered[:size])), wanted)]
    chosen = chosen[:most]
    return HeldOutChoice(tuple(chosen), sum(name in request.unseen for name in chosen))


def draw_order(names: Sequence[str], unseen: Collection[str], seed: int) -> list[str]:
    """Return all names in a random order by ``seed``, unseen ones first."""
    order = np.random.default_rng(seed).permutation(len(names))
    return sorted((names[index] for index in order), key=lambda name: name not in unseen)
