"""The training of an agent for a workload: learn in chunks, let the planner compete, judge what would be published.

A `Training` is resumable: between chunks `checkpoint` gives bytes from which a new one goes on. What it
publishes is the artifact that was judged, never the learner itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from time import perf_counter
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import names
from app.kinds.iterative.spec import Spec
from app.policies.artifact import load, save
from app.policies.network import NetworkPolicy
from app.policies.table import TablePolicy
from workers.evaluation.judge import Court, calibrated, judge
from workers.evaluation.optimum import NoOptimum, Optimum, plan
from workers.learning.algorithms.config import Config, QTable, encode, named
from workers.learning.execution.serial import Plan, Serial
from workers.simulators.expected import ExpectedSimulator
from workers.simulators.iterative import TRAINING

LEARNED = "dueling_double_dqn"  # what `auto` learns
ENVIRONMENTS = 512
STEPS = 2_500_000
SECONDS = 15.0
CHUNK_STEPS = 1 << 17
COMPARING = 0.9  # share of the progress bar that is learning; the rest is comparing and judging
VALIDATION_EPISODES = 2_048
STRENGTHS = (1.0, 0.5, 0.25, 0.1)  # of what was learned on top of the advice; the best on validation episodes is taken
OUTPUTS = ("advantage.", "value.", "q")  # the arrays that what was learned is linear in
TABLE_ENTRIES = ("allocation.", "left.", "effect.", "progress")


class Untrainable(ValueError):
    """No agent can be had by the algorithm asked for; the message says why."""


class TrainRequest(Protocol):
    """What a training is asked for (the API's request has these, among others)."""

    @property
    def algorithm(self) -> str:
        """`auto`, `planner`, or a name of `workers.learning.algorithms.config.named`."""

    @property
    def budget(self) -> int | None:
        """Environment steps; None for the default, which also has a limit of working seconds."""

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""


@dataclass(frozen=True)
class Candidate:
    """Something that could be published: its return on the validation episodes, and at what strength it was taken."""

    artifact: bytes
    validation: float
    strength: float


@dataclass(frozen=True)
class TrainedAgent:
    """What is published."""

    artifact: bytes
    report: dict[str, Any]


class Training:
    """One training job.

    Args:
        spec: the workload's.
        table: its domain model.
        request: see `TrainRequest`.
        checkpoint: what `checkpoint` gave for the same arguments, to go on from; or None.
        champion: the artifact that answers now; it must be beaten to be replaced.
        clock: seconds from any origin.

    Raises:
        Untrainable: the algorithm is unknown, or the planner can't plan this workload.
    """

    def __init__(
        self,
        spec: Spec,
        table: ModelTable,
        request: TrainRequest,
        checkpoint: bytes | None = None,
        *,
        champion: bytes | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.spec, self.table, self.request, self.champion, self.clock = spec, table, request, champion, clock
        self.layout = Layout(spec)
        self._result: TrainedAgent | None = None
        self.curve: list[tuple[int, float]] = []
        self.config = _config(request.algorithm, self.layout)
        self.learner = None if self.config is None else self._learner(self.config)
        if self.learner is not None and checkpoint:
            self.learner.restore(checkpoint)

    def _learner(self, config: Config) -> Serial:
        plan = Plan(
            self.request.budget or STEPS, CHUNK_STEPS, None if self.request.budget else SECONDS, keep_memory=False
        )
        worlds, draws = np.random.SeedSequence(self.request.seed).generate_state(2)
        batch = min(ENVIRONMENTS, max(plan.steps // 64, 1))
        simulator = ExpectedSimulator(self.layout, self.table, batch, int(worlds), TRAINING)
        return Serial(config, simulator, plan, int(draws), self.clock)

    @property
    def done(self) -> bool:
        """Whether `result` is there."""
        return self._result is not None

    @property
    def learning(self) -> bool:
        """Whether there is still something to learn."""
        return self.learner is not None and not self.learner.done

    @property
    def progress(self) -> float:
        """Share of the whole that is done, 0 to 1."""
        if self.done:
            return 1.0
        return COMPARING * (self.learner.progress if self.learner is not None else 1.0)

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to go; None before the first chunk."""
        if self.done or self.learner is None:
            return 0.0
        eta = self.learner.eta_seconds
        return None if eta is None else eta + 2.0

    @property
    def live(self) -> dict[str, Any]:
        """Figures for a progress bar: phase, and the learner's last chunk."""
        phase = "learning" if self.learning else "done" if self.done else "judging"
        return {"phase": phase, "algorithm": self.request.algorithm} | (
            asdict(self.learner.live) if self.learner else {}
        )

    def advance(self) -> None:
        """Do one chunk: about half a second of learning, or the judging at the end."""
        if self.learner is not None and not self.learner.done:
            told = self.learner.advance()
            if told.episode_return is not None:
                self.curve.append((told.steps, told.episode_return))
            return
        self._result = self._judged()

    def checkpoint(self) -> bytes:
        """Bytes to go on from; empty where nothing is learned."""
        return b"" if self.learner is None else self.learner.checkpoint()

    def result(self) -> TrainedAgent:
        """What was judged; raises RuntimeError while there is something left to do."""
        if self._result is None:
            raise RuntimeError("the training is not done: call advance() until `done`")
        return self._result

    def _judged(self) -> TrainedAgent:
        """Compare the candidates on validation episodes; steady the best; judge it on fresh ones."""
        begun, seed = self.clock(), self.request.seed
        planned, why_not = self._planned()
        court = Court(self.spec, self.table, seed + 1, VALIDATION_EPISODES)
        candidates = self._candidates(planned, court)
        if not candidates:
            raise Untrainable(f"the planner can't plan this workload: {why_not}")
        best = max(candidates, key=lambda name: candidates[name].validation)
        artifact = calibrated(self.spec, self.table, candidates[best].artifact, seed=seed + 2)
        verdict = judge(self.spec, self.table, artifact, seed=seed + 3, champion=self.champion, optimum=planned)
        report = {"algorithm": best, "requested": self.request.algorithm, "seed": seed, **verdict, **self._learned()}
        report["candidates"] = {name: candidate.validation for name, candidate in candidates.items()}
        report["strength"] = candidates[best].strength
        return TrainedAgent(artifact, report | {"judging_seconds": self.clock() - begun})

    def _planned(self) -> tuple[Optimum | None, str]:
        """The exact optimum, or else the finest plan that can be had; or why there is none."""
        try:
            return plan(self.layout, self.table), ""
        except NoOptimum as error:
            return None, str(error)

    def _candidates(self, planned: Optimum | None, court: Court) -> dict[str, Candidate]:
        """By name: what was learned, and the plan where it was asked for or competes."""
        found = {}
        if self.learner is not None:
            name = LEARNED if self.request.algorithm == "auto" else self.request.algorithm
            kind, config, arrays = self.learner.agent.export()
            family = NetworkPolicy if kind == "network" else TablePolicy
            tried = []
            for strength in STRENGTHS if config["advice"] is not None else STRENGTHS[:1]:
                policy = family.build({"algorithm": name, **config}, _weakened(arrays, strength))
                tried.append(_tried(court, save(policy, self.layout), strength))
            found[name] = max(tried, key=lambda candidate: candidate.validation)
        if planned is not None and self.request.algorithm in {"auto", "planner"}:
            found["planner"] = _tried(court, save(planned.policy, self.layout), 1.0)
        return found

    def _learned(self) -> dict[str, Any]:
        """Of the report: config, effort, learning curve and build times."""
        if self.learner is None or self.config is None:
            return {}
        learner, built = self.learner, getattr(self.learner.agent, "report", None)
        return {
            "config": msgspec.json.decode(encode(self.config)),
            "environment_steps": learner.steps,
            "updates": learner.updates,
            "seconds": learner.elapsed,
            "steps_per_second": learner.steps / max(learner.elapsed, 1e-9),
            "curve": [list(point) for point in self.curve],
            "build": asdict(built) if is_dataclass(built) and not isinstance(built, type) else None,
        }


def _weakened(arrays: Mapping[str, NDArray[Any]], strength: float) -> dict[str, Any]:
    """The arrays of a policy whose output on top of the advice is `strength` times as large."""
    return {name: value * np.float32(strength) if name.startswith(OUTPUTS) else value for name, value in arrays.items()}


def _tried(court: Court, artifact: bytes, strength: float) -> Candidate:
    return Candidate(artifact, float(court.score_artifact(load(artifact)).returns.mean()), strength)


def _config(algorithm: str, layout: Layout) -> Config | None:
    """The config that an algorithm's name stands for; None where nothing is learned."""
    if algorithm == "planner":
        return None
    try:
        config = named(LEARNED if algorithm == "auto" else algorithm)
    except KeyError:
        raise Untrainable(f"unknown algorithm {algorithm!r}") from None
    if isinstance(config, QTable):
        entries = tuple(i for i, name in enumerate(names(layout)) if name.startswith(TABLE_ENTRIES))
        return msgspec.structs.replace(config, entries=entries[:6])
    return config
