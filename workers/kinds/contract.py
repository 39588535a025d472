"""The contract of a kind's learning half: the calls that worker tasks make, whatever the kind.

A kind exports one object under the entry-point group ``steward.learned_kinds``, by the name of its serving half. Every
task reads plain inputs (``workers.inputs``), closes its database session, makes one of the calls below, and publishes
the result. Heavy packages (torch, scikit-learn, numba) are imported within the calls, never with the object.

``workers.kinds.simulated.SimulatedKind`` implements most of it: a kind whose decisions are numbered actions in a
simulator writes ``fit`` and ``world``, and inherits the rest. Every registered kind is run through
``tests/contracts/test_learned_kind.py``.

Arrays: B environments in lock-step, N actions, T terms of the reward. Larger returns are better; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from workers import plugins

if TYPE_CHECKING:
    from gymnasium import spaces

    from app.kinds.contract.policy import Policy
    from workers.evaluation.problem import Problem
    from workers.inputs import Conditions, HoldOut, LoggedRun, Workload
    from workers.learning.simulator import JointSimulator, Simulator
    from workers.learning.training.driver import PlannedPolicy, Trainer, TrainingProblem
    from workers.learning.training.request import Request


class FittedModel(NamedTuple):
    """A fitted domain model.

    Attributes:
        model: the serialised model, which the serving half reads.
        report: JSON-like values on the fit, among them ``family``, the name of the selected family.
    """

    model: bytes
    report: dict[str, Any]


class Spaces(NamedTuple):
    """The observation and action spaces of a workload's policies.

    Attributes:
        observation: space of one environment's observation, [D].
        action: space of N numbered actions.
        advice: columns, among the features of each candidate action, that hold its score in units of the reward, with
            which learners initialise their policy; None: the kind gives no scores.
    """

    observation: spaces.Box
    action: spaces.Discrete
    advice: slice | None


class Evaluation(NamedTuple):
    """The problem that an evaluation plays, and a JSON-like report on the executions held out for level L3."""

    problem: Problem
    held_out: dict[str, Any]


@runtime_checkable
class LearnedKind(Protocol):
    """The learning half of a kind.

    Attributes:
        name: the kind's name, equal to its entry point's.
        reads_runs: whether ``off_policy`` needs the logs of finished runs.
    """

    name: str
    reads_runs: bool

    @property
    def algorithms(self) -> Sequence[str]:
        """Names of the algorithms that a training request may choose."""
        ...

    def spaces(self, spec: Any) -> Spaces:
        """Return the observation and action spaces of policies for ``spec``, of one environment each.

        Raises:
            ValueError: policies of this spec have no numbered actions.
        """
        ...

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        """Fit a domain model to all of a workload's samples; ``seed`` makes it reproducible.

        Raises:
            TooLittleData: there are too few samples for a model.
            CriterionMissed: a simulated iteration takes longer than the spec allows.
            EstimationError: the samples can't be modelled for another reason.
        """
        ...

    def simulator(self, workload: Workload, conditions: Conditions) -> Simulator | JointSimulator:
        """Make ``conditions.batch`` environments of the workload in lock-step: a ``World`` for evaluations, a simulator
        of either protocol for learners.

        It is a ``JointSimulator`` where the workload has a policy for each of several roles, which then learn together.

        Raises:
            ValueError: the kind has no simulator for this purpose.
        """
        ...

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return heuristic policies by name, as they decide in the simulator; at least one."""
        ...

    def reference(self, workload: Workload) -> PlannedPolicy:
        """Compute the optimal policy or best plan without learning; if there is none, the result's ``why_not`` says
        why."""
        ...

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> Trainer:
        """Make the trainer that carries out one training in this process.

        Args:
            workload: with its domain model, or with its samples where agents learn from samples alone.
            request: algorithm, budget, seed and options of the training.
            champion: the serving artifact, which a new agent must beat to replace; None: there is none.

        Raises:
            Untrainable: no agent can be trained for this workload or request; the message says why.
            ExecutionError, BackendError: the requested way of execution or numeric backend is not available.
        """
        ...

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """Prepare an evaluation; its problem also makes the charts, heat maps and texts of the report.

        Args:
            workload: with samples where executions are held out or agents learn from samples alone.
            held_out: which executions to hold out for level L3; None: the evaluation has no L3.
            seed: seed of the random choice of samples.
        """
        ...

    def off_policy(self, workload: Workload, artifact: bytes, runs: Sequence[LoggedRun]) -> dict[str, Any]:
        """Estimate the return that an agent would have had in logged runs; ``{"reason": …}`` where that is impossible.

        Raises:
            IncompatibleArtifact: the artifact can't be read.
        """
        ...


@runtime_checkable
class Online(Protocol):
    """A kind whose agents can continue learning from recently reported runs (``TrainingOptions.online``)."""

    def window(self, workload: Workload, runs: Sequence[LoggedRun]) -> bytes:
        """Pack the conditions that runs met in a window of time as bytes, from which simulators reproduce them.

        Args:
            workload: the workload with its domain model.
            runs: the runs of the window, each with its reports within the window, at least one; there may be no runs.

        Raises:
            TooLittleData: the window is too short or empty to learn from; the message names what is missing.
        """
        ...

    def online(self, workload: Workload, request: Request, window: bytes) -> TrainingProblem:
        """Make the problem of an online training, which learns in one part of the window and judges in a disjoint one.

        Args:
            workload: with its domain model.
            request: options and seed of the training.
            window: the result of ``window``.

        Raises:
            CheckpointError: the window's bytes can't be read.
        """
        ...


@runtime_checkable
class Competing(Protocol):
    """A kind whose trainings may be a sweep: algorithms and seeds that compete, one trial per worker."""

    def training(self, workload: Workload, request: Request) -> TrainingProblem:
        """Make the problem in which all trials of one training learn, and on which they are compared."""
        ...


def learned_kinds() -> tuple[str, ...]:
    """Return the sorted names of the installed kinds that have a learning half."""
    return plugins.names(plugins.LEARNED_KINDS)


def learned_kind(name: str) -> LearnedKind:
    """Load the learning half of a kind.

    Raises:
        PluginError: no installed package has a kind of that name, or the object can't be imported, lacks a part of the
            contract, or has another name.
    """
    result = plugins.load(plugins.LEARNED_KINDS, name)
    missing = [part for part in _PARTS if not hasattr(result, part)]
    if missing:
        raise plugins.PluginError(f"the learning half of kind {name!r} lacks {', '.join(missing)}")
    if result.name != name:
        raise plugins.PluginError(f"the learning half of kind {name!r} calls itself {result.name!r}")
    kind: LearnedKind = result
    return kind


_PARTS = sorted({*LearnedKind.__annotations__, *(part for part in vars(LearnedKind) if not part.startswith("_"))})
