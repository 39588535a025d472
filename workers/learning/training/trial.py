"""Trials of a training, and continual training over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.policies.artifact import SHARED
from workers.learning.agent import CARRY, Agent
from workers.learning.algorithms.base import Exported
from workers.learning.algorithms.config import encode
from workers.learning.execution import Plan, make_executor
from workers.learning.execution import base as blob
from workers.learning.simulator import JointSimulator, with_standardisation
from workers.learning.training.conclude import imitate, take_over
from workers.learning.training.driver import PlannedPolicy, TrainingProblem
from workers.learning.training.request import ONLINE, STEPS, Bracket, Entry, Request, Untrainable, config_for

ENVIRONMENTS, FEWEST = 512, 16
SHORTEST = 64  # fewest steps per environment
CHUNK_STEPS = 1 << 17


def environments(steps: int, length: int) -> int:
    """Return the number of environments in lock-step for ``steps`` steps in all, with episodes of ``length`` decisions.

    Beyond 16 it is limited so that each environment completes an episode: unfinished episodes would hide the late
    effects of decisions.
    """
    return min(ENVIRONMENTS, max(steps // SHORTEST, 1), max(steps // max(length, SHORTEST), FEWEST))


@dataclass(frozen=True)
class Candidate:
    """An artifact that can be published, and its policy's mean return on the validation episodes (`validation`)."""

    artifact: bytes
    validation: float


class Trial:
    """One learner with its budget in a training.

    Args:
        problem: the training problem.
        request: the training request, with the budget.
        entry: algorithm and seed of the trial.
        bracket: shares of the budget at which trials are compared.
        clock: function that returns monotonic seconds.

    Raises:
        Untrainable: the algorithm is unknown.
        ExecutionError, BackendError: the executor or device cannot run it.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        request: Request,
        entry: Entry,
        bracket: Bracket,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.problem, self.request, self.entry, self.bracket = problem, request, entry, bracket
        self.config = config_for(
            entry.algorithm,
            request,
            problem.tabular,
            continuing=problem.continuing,
            cloning_entropy=problem.cloning_entropy,
        )
        steps = max(1, round((request.budget or STEPS) * bracket.budget(float(request.tried))))
        plan = Plan(steps, CHUNK_STEPS, keep_memory=False, pauses=bracket.shares[:-1])
        worlds, draws = np.random.SeedSequence(entry.seed).generate_state(2)
        simulator = problem.simulator(environments(steps, problem.length), int(worlds))
        result = simulator.make_any() if problem.continuing else None
        if result is not None and not isinstance(result, JointSimulator):  # no end: standardise
            self.config = with_standardisation(self.config, result, entry.seed)
        self.runner = make_executor(request.executor, self.config, simulator, plan, int(draws), clock)
        self.curve: list[tuple[int, float]] = []
        self.imitated: dict[str, Any] | None = None
        self._prepared = False

    @property
    def share(self) -> float:
        """Used share of the budget, 0 to 1."""
        return self.runner.progress

    @property
    def budget_seconds(self) -> float | None:
        """Estimated wall-clock seconds of the whole budget; None before the first chunk."""
        return self.runner.elapsed / self.share if self.share > 0 else None

    @property
    def live(self) -> dict[str, Any]:
        """Algorithm, seed, and statistics of the last chunk (steps, return, loss, …), by name."""
        return {"algorithm": self.entry.algorithm, "seed": self.entry.seed, **asdict(self.runner.live)}

    def prepare(self, planned: PlannedPolicy | None) -> None:
        """Warm-start from a published agent and imitate an expert, as requested; only once.

        Raises:
            Untrainable: the warm start or the imitation is impossible.
        """
        if self._prepared:
            return
        if self.request.start is not None or self.request.imitate is not None:
            agent = self.runner.agent
            if not isinstance(agent, Agent):
                raise Untrainable("agents that learn together begin from nothing: leave out start_from and imitate")
            take_over(agent, self.problem, self.request)
            self.imitated = imitate(agent, self.problem, self.request, self.entry.seed, planned)
        self._prepared = True

    def advance(self) -> None:
        """Learn for 131,072 environment steps, or up to the next rung; ExecutionError if actors end repeatedly."""
        stats = self.runner.advance()
        if stats.episode_return is not None:
            self.curve.append((stats.steps, stats.episode_return))

    @property
    def artifact(self) -> bytes:
        """Artifact of the present policy; ValueError if the learner has none yet."""
        export = self.runner.agent.export()
        several = isinstance(export, Mapping)
        learned = {role: self._built(one) for role, one in export.items()} if several else self._built(export)
        return self.problem.save(learned)

    def compared(self) -> Candidate:
        """Return the artifact of the present policy with its validation return; ValueError if there is none yet."""
        artifact = self.artifact
        return Candidate(artifact, self.problem.score(artifact))

    def _built(self, exported: Exported) -> Any:
        kind, config, arrays = exported
        return SHARED[kind].build({"algorithm": self.entry.algorithm, **config}, dict(arrays))

    @property
    def report(self) -> dict[str, Any]:
        """Config, steps, updates, seconds, learning curve (steps, return) and build times, as JSON values by name."""
        runner, built = self.runner, getattr(self.runner.agent, "report", None)
        return {
            "config": msgspec.json.decode(encode(self.config)),
            "environment_steps": runner.steps,
            "updates": runner.updates,
            "seconds": runner.elapsed,
            "steps_per_second": runner.steps / max(runner.elapsed, 1e-9),
            "curve": [list(point) for point in self.curve],
            "build": asdict(built) if is_dataclass(built) and not isinstance(built, type) else None,
            "imitated": self.imitated,
        }

    def checkpoint(self) -> bytes:
        """Serialise the trial to bytes that `restore` reads."""
        learner = {"learner": np.frombuffer(self.runner.checkpoint(), np.uint8)}
        return blob.pack(learner, {"curve": self.curve, "imitated": self.imitated, "prepared": self._prepared})

    def restore(self, data: bytes) -> None:
        """Resume from a checkpoint of the same trial; raises CheckpointError if the bytes are none."""
        arrays, values = blob.unpack(data)
        self.runner.restore(arrays["learner"].tobytes())
        self.curve = [(int(steps), float(value)) for steps, value in values["curve"]]
        self.imitated, self._prepared = values["imitated"], values["prepared"]

    def close(self) -> None:
        """Release the executor's processes and memory; can be called twice."""
        self.runner.close()


# Continual training: after each time window one learner learns from it and is judged.
#
# A window is a ``TrainingProblem`` of its own, with disjoint parts for learning and for the verdict. Parameters and
# optimiser state carry over to the next window; stored transitions do not. In each window a second, new learner starts
# by imitating the heuristic that would be in use: a window has too few rare decisions to learn their value by trial,
# and the first policy may have got into states with long queues only. The best on the learning part continues, among
# both learners before and after learning.


AVERAGE = "averaging"  # name of the count of averaged parameters in the plain values
NO_PLAN = PlannedPolicy(why_not="nothing is planned for a window")


@dataclass(frozen=True)
class WindowResult:
    """Result of learning from one window.

    Attributes:
        algorithm: name of the algorithm that learned.
        artifact: serialised policy.
        learner: serialised state of the learner, with which the next window continues.
        report: config, steps, updates, seconds, learning curve; returns `before` and `after` under `validation`.
    """

    algorithm: str
    artifact: bytes
    learner: bytes
    report: dict[str, Any]


def learn_window(
    problem: TrainingProblem, request: Request, number: int, learner: bytes, after_chunk: Callable[[Trial], None]
) -> WindowResult:
    """Learn from the runs of a time window by the former learner and, if it is PPO's, by a new one; return the better.

    Args:
        problem: the window as a training problem.
        request: training request with the budget of one window; the first window starts from ``start``, if given.
        number: index of the window, from 0; determines the seed.
        learner: serialised learner after the previous window; empty for the first window.
        after_chunk: function that is called with the trial after each chunk.

    Raises:
        Untrainable: the agent in ``start`` does not fit.
    """
    algorithm = ONLINE if request.start is None else request.start.algorithm
    seed = int(np.random.SeedSequence([request.seed, number]).generate_state(1)[0])
    wanted = [(replace(request, algorithm=algorithm, imitate=None), learner)]
    if algorithm == ONLINE:
        wanted.append((replace(wanted[0][0], start=None, imitate=next(iter(problem.experts()))), b""))
    window_results = list[WindowResult]()
    for requested, begun in wanted:
        trial = Trial(problem, requested, Entry(algorithm, seed), Bracket(1))
        try:
            window_results.append(_learn_by(trial, begun, after_chunk))
        finally:
            trial.close()
    return max(window_results, key=lambda one: max(one.report["validation"].values()))


def _learn_by(trial: Trial, learner: bytes, after_chunk: Callable[[Trial], None]) -> WindowResult:
    if learner:
        trial.runner.agent.restore(*blob.unpack(learner))
    else:
        trial.prepare(None)
    before = _LearnerState.by(trial)
    while not trial.runner.done:
        trial.advance()
        after_chunk(trial)
    after = _LearnerState.by(trial)
    best, scores = max(before, after, key=lambda one: one.score), {"before": before.score, "after": after.score}
    return WindowResult(trial.entry.algorithm, best.artifact, best.learner, {**trial.report, "validation": scores})


class _LearnerState(NamedTuple):
    """State of a learner: its policy's artifact, the serialised learner, and the policy's validation return."""

    artifact: bytes
    learner: bytes
    score: float

    @classmethod
    def by(cls, trial: Trial) -> _LearnerState:
        result = trial.compared()
        return cls(result.artifact, _serialise_average(trial.runner.agent), result.validation)


def _serialise_average(agent: Agent) -> bytes:
    """Serialise an agent such that it continues from its parameters' average, if any, and starts a new average."""
    arrays, values = agent.state(memory=False)
    if values.get(AVERAGE):
        arrays, values = {**arrays, "online": arrays["average"]}, {**values, AVERAGE: False}
    return blob.pack({name: value for name, value in arrays.items() if name != CARRY}, values)
