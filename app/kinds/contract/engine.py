"""The contract of a decision engine: how the service decides for workloads of one kind.

What happens to a report is the same for all kinds and stands in ``app.runs``, from ``reporter`` on: it is numbered,
compared with what is there, decided, written durably with its decision, and answered. An engine says what a report
*is*, what is kept of a run between two reports, and what the answer is. States are never changed in place: a report
that can't be written must leave no trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, NoReturn, Protocol

import msgspec

from app.kinds.contract.drift import Residuals
from app.kinds.contract.inputs import invalid
from app.kinds.contract.member import Member
from app.kinds.forecasting.answer import Coming
from app.policies.artifact import Artifact

Query = Mapping[str, list[str]]
DEFAULT_ROLE = "default"
"""What is meant where no role is named: all that a workload with one policy has."""
NO_STATE = (
    "workloads of kind {} are decided for in runs: start one with POST /runs, report to it, and read the answer again "
    "with GET /decision?run=…"
)


class RolePolicy(NamedTuple):
    """The champion of one role; `artifact` is None where it can't be used, and `problem` says why."""

    version: int
    artifact: Artifact | None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A workload as it stands at one revision. Spec, layout and model are its kind's own.

    Attributes:
        model: the domain model that the champion was trained on; without a champion the latest; None before the first.
        agent_version: version of the champion in the default role; None when a heuristic answers.
        artifact: the champion's policy and what it was made for; None without a champion, or when it can't be used.
        problem: why the champion or the model can't be used; empty when all is well.
        policies: the champions of all roles, by role.
        shadow: an agent that is consulted in all runs that have no shadow of their own.
        coming: what is expected to come in the next hour, by series, where it was counted lately; see ``next_hour``.
        members: what the workloads that its spec names tell of themselves, by name.
        rule: name of the rule that decides in place of agents and of the default rule; empty: none is named.
        stored_bytes: what was read for it: spec, domain model and agents.
        compiled: the same workload ready to decide, by the rule that decides; empty: agents and the default rule.
    """

    workload_id: str
    name: str
    spec_version: int
    spec: Any
    layout: Any
    model: Any
    model_version: int | None
    agent_version: int | None
    artifact: Artifact | None
    revision: int
    problem: str = ""
    policies: Mapping[str, RolePolicy] = field(default_factory=dict)
    shadow: "Shadow | None" = None
    coming: Mapping[str, Coming] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    rule: str = ""
    stored_bytes: int = 0
    compiled: "dict[str, CompiledWorkload]" = field(default_factory=dict, repr=False)

    @property
    def answering(self) -> int | None:
        """Version of the champion, of several roles' the newest; None when heuristics answer in all of them."""
        return max((one.version for one in self.policies.values()), default=self.agent_version)


@dataclass(frozen=True, eq=False)
class Shadow:
    """An agent that is consulted too; `artifact` is None where it can't be used, and `problem` says why."""

    version: int
    artifact: Artifact | None
    problem: str = ""


class CompiledWorkload(Protocol):
    """A snapshot ready to decide with; the rest is its kind's own."""

    snapshot: Snapshot

    def __hash__(self) -> int:
        """By identity: reports of one compiled workload are decided together."""
        ...


class Pending(msgspec.Struct, frozen=True):
    """A report that waits for its decision. A structure, as are those below: a tuple with names takes thrice as long.

    Attributes:
        state: of the run before it.
        report: as ``read`` gave it.
        start: what the run was started with.
    """

    run: str
    iteration: int
    state: Any
    report: Any
    start: Mapping[str, Any]
    shadow: Shadow | None


class Answered(msgspec.Struct, frozen=True):
    """An encoded decision, the state of the run after the report that it answers, and what that says of a drift.

    Attributes:
        residuals: None where the kind watches nothing, or has no domain model to go by.
        risk: why the run is at risk of missing a target; empty while it is on track, or has no target; None where that
            can't be found out: what was said before goes on to hold.
        expected_seconds: of a first decision: seconds that the first iteration is predicted to take, if anything does.
        quiet: whether the next report need not come before something happens, however long that takes.
    """

    decision: bytes
    state: Any
    residuals: Residuals | None = None
    risk: str | None = ""
    expected_seconds: float | None = None
    quiet: bool = False


class DecisionEngine(Protocol):
    """How the service decides for workloads of one kind."""

    def compile(self, snapshot: Snapshot) -> CompiledWorkload:
        """Everything that a decision needs and that no report changes."""
        ...

    def rules(self, compiled: Any) -> Sequence[str]:
        """Names of the rules that a run of this workload may be decided by; ``Snapshot.rule`` is one of them."""
        ...

    def begin(self, compiled: Any, run: str, start: Any, now: datetime) -> Answered:
        """The first decision of a run, and its first state; ``start`` is of the kind's own model.

        Raises:
            InvalidInput: it doesn't fit the workload.
        """
        ...

    def decode(self, body: bytes) -> Any:
        """A report of this kind; two that say the same are encoded to the same bytes by ``msgspec``, in sorted order.

        Raises:
            ValidationError: it is none; every offending field is named.
        """
        ...

    def read(self, compiled: Any, state: Any, iteration: int, report: Any) -> Any:
        """A report as ``answer`` takes it.

        Raises:
            InvalidInput: it doesn't fit the workload.
            Contradiction: it doesn't fit what the run has reported before.
        """
        ...

    def takes_long(self, compiled: Any, state: Any, report: Any) -> bool:
        """Whether reading a report and answering it may take more than some 10 ms: it is then done aside, in a thread.

        Args:
            report: as ``decode`` gave it.
        """
        ...

    def answer(self, compiled: Any, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """The decisions for reports of different runs of one workload, in order."""
        ...

    def serialise(self, state: Any) -> msgspec.Raw:
        """A state as JSON: an array."""
        ...

    def restore(self, stored: list[Any]) -> Any:
        """The state that ``serialise`` gave, in any process."""
        ...

    def weight(self, state: Any) -> int:
        """About how many bytes a state takes in memory."""
        ...

    def parse_state(self, compiled: Any, query: Query) -> Any:
        """The state that a query gives in full, for ``answer_states``.

        Raises:
            InvalidInput: it doesn't fit the workload, or the kind takes no such query.
        """
        ...

    def answer_states(self, compiled: Any, given: Sequence[Any], now: datetime) -> list[bytes]:
        """The decisions for states that are given in full, in order."""
        ...


class DecidedInRuns:
    """The part of an engine whose workloads are decided for in runs alone, since no query can hold their state."""

    def rules(self, compiled: Any) -> Sequence[str]:  # noqa: ARG002
        """Names of the rules that runs may name: none, where a kind says nothing else."""
        return ()

    def parse_state(self, compiled: CompiledWorkload, query: Query) -> NoReturn:  # noqa: ARG002
        """No query holds a state.

        Raises:
            InvalidInput: always; it says what to do instead.
        """
        snapshot = compiled.snapshot
        raise invalid("/query/workload", NO_STATE.format(snapshot.spec.kind), snapshot.name)

    def answer_states(self, compiled: CompiledWorkload, given: Sequence[Any], now: datetime) -> list[bytes]:  # noqa: ARG002
        """None: ``parse_state`` gives none."""
        return []
