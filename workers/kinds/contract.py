"""The contract of a kind's learning half: what tasks ask of it, whatever the kind.

A kind exports one object under the entry-point group ``steward.learned_kinds``, by the name of its serving half. Every
task reads plain inputs (``workers.inputs``), closes its session, makes one of the calls below, and publishes what comes
of it. What is heavy (torch, scikit-learn, numba) is imported within the calls, never with the object.

``workers.kinds.simulated.SimulatedKind`` has a ready-made part for most of it: a kind whose decisions are numbered
actions in a simulator writes ``fit`` and ``world``, and inherits the rest. Every registered kind is run through
``tests/contracts/test_learned_kind.py``.

Arrays: B environments in lock-step, N actions, T terms of the reward; returns are larger where better, and durations
are seconds.
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
    from workers.learning.training.driver import Planned, Trainer, TrainingProblem
    from workers.learning.training.request import Request


class Fitted(NamedTuple):
    """A domain model as bytes that the serving half reads, and its report: plain values, ``family`` among them."""

    model: bytes
    report: dict[str, Any]


class Spaces(NamedTuple):
    """What a policy of a workload sees and does.

    Attributes:
        observation: of one environment, [D].
        action: N actions.
        advice: of a set of candidates, the feature that scores each in the unit of the reward, to begin from; or None.
    """

    observation: spaces.Box
    action: spaces.Discrete
    advice: slice | None


class Evaluation(NamedTuple):
    """What an evaluation plays, and what is said of the executions that were held out for it."""

    problem: Problem
    held_out: dict[str, Any]


@runtime_checkable
class LearnedKind(Protocol):
    """The learning half of a kind.

    Attributes:
        name: of the kind.
        reads_runs: whether ``off_policy`` wants the runs that ended.
    """

    name: str
    reads_runs: bool

    @property
    def algorithms(self) -> Sequence[str]:
        """Names of the algorithms that a training may ask for."""
        ...

    def spaces(self, spec: Any) -> Spaces:
        """What policies of a spec see and do; raises ValueError where they have no numbered actions."""
        ...

    def fit(self, workload: Workload, seed: int) -> Fitted:
        """Fit a domain model to all of a workload's samples.

        Raises:
            TooLittleData, CriterionMissed, EstimationError: see ``workers.estimators.base``.
        """
        ...

    def simulator(self, workload: Workload, conditions: Conditions) -> Simulator | JointSimulator:
        """B environments of the workload under conditions; for evaluations a ``World``, which the protocol plays.

        Where the workload has a policy for each of several roles, learners get one in which they learn together.

        Raises:
            ValueError: the kind makes none for this purpose.
        """
        ...

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """The classic policies, by name, as they decide in the simulator; at least one."""
        ...

    def reference(self, workload: Workload) -> Planned:
        """The optimum, or the best plan that can be had without learning; or why there is none."""
        ...

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> Trainer:
        """What a training does in one process.

        Args:
            workload: with its domain model, or its samples where agents learn from these alone.
            request: what is asked for.
            champion: the artifact that answers now; it must be beaten to be replaced.

        Raises:
            Untrainable: the workload, or what is asked for, gives no agent; the message says why.
            ExecutionError, BackendError: it can't be run in the way that was asked for.
        """
        ...

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """What an evaluation plays; pictures, heat maps and words for its report are the problem's.

        Args:
            workload: with samples where something is held out or agents learn from these alone.
            held_out: what is kept back for L3; None: the evaluation ends before it.
            seed: of what is drawn of the samples.
        """
        ...

    def off_policy(self, workload: Workload, artifact: bytes, runs: Sequence[LoggedRun]) -> dict[str, Any]:
        """What an agent would have earned in the runs that really happened; ``reason`` where that can't be said."""
        ...


@runtime_checkable
class Online(Protocol):
    """A kind whose agents can go on learning from what runs have just reported: see ``TrainingOptions.online``."""

    def window(self, workload: Workload, runs: Sequence[LoggedRun]) -> bytes:
        """What runs met in a window of time, so that simulators can let it be met again.

        Args:
            workload: with its domain model.
            runs: what each has reported in the window, and no more, at least one report each; perhaps none did.

        Raises:
            TooLittleData: nothing can be learned from it; the message says what is missing.
        """
        ...

    def online(self, workload: Workload, request: Request, window: bytes) -> TrainingProblem:
        """What is learned in, and judged on: parts of the window that have nothing in common."""
        ...


@runtime_checkable
class Competing(Protocol):
    """A kind whose trainings may be a sweep: algorithms and seeds that compete, each on a worker of its own."""

    def training(self, workload: Workload, request: Request) -> TrainingProblem:
        """What all trials of one training learn in, and are compared on."""
        ...


# The learning halves of all kinds that are installed: entry points of the group ``steward.learned_kinds``.


def learned_kinds() -> tuple[str, ...]:
    """Names of the kinds that can be learned for, in order."""
    return plugins.names(plugins.LEARNED_KINDS)


def learned_kind(name: str) -> LearnedKind:
    """The learning half of a kind.

    Raises:
        PluginError: none of that name is installed, or it is broken: it can't be imported, lacks a part of the
            contract, or goes by another name.
    """
    found = plugins.load(plugins.LEARNED_KINDS, name)
    missing = [part for part in _PARTS if not hasattr(found, part)]
    if missing:
        raise plugins.PluginError(f"the learning half of kind {name!r} lacks {', '.join(missing)}")
    if found.name != name:
        raise plugins.PluginError(f"the learning half of kind {name!r} calls itself {found.name!r}")
    kind: LearnedKind = found
    return kind


_PARTS = sorted({*LearnedKind.__annotations__, *(part for part in vars(LearnedKind) if not part.startswith("_"))})
