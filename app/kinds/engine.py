"""Serving common to all kinds: the deciding policy, fallbacks, shadows, and stored state.

A kind supplies a ``Serving``, which reads reports, chooses, and writes the choice as a decision. The ``Engine`` makes a
decision engine of it:
1. Reports that wait for one workload are decided together.
2. If that fails, each is decided by itself; if the agent fails, the heuristic decides; if that fails too, the run keeps
its allocation. So runs don't affect each other, and there is always a decision, which names the failure.
3. A shadow is consulted after the decision. Its failure is recorded without effect."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

import msgspec
from pydantic import BaseModel

from app.kinds.contract.caps import Cap, Spending
from app.kinds.contract.engine import EncodedDecision, Pending, Query, Residuals, Shadow, Snapshot
from app.kinds.contract.inputs import invalid, timestamp
from app.kinds.fields import Part, decoded
from app.policies import artifact
from app.policies.artifact import Artifact, Memories, Memory
from app.policies.base import IncompatibleArtifact

logger = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode

HOLD = "hold"
"""Policy name of a decision that keeps the allocation because everything else failed."""
NO_AGENT = "no agent promoted,"
NO_STATE = (
    "workloads of kind {} get decisions in runs only: start one with POST /runs, report its iterations, and read the "
    "last decision with GET /decision?run=…"
)


class DecidedBy(msgspec.Struct, frozen=True):
    """The deciding policy, as decisions describe it.

    Attributes:
        source: what decides: "agent", "heuristic" or "fallback" (after a failure).
        policy: name of the deciding policy.
        code: code of the reason ("no_model", "no_agent", "fallback") if a heuristic decides for want of an agent;
            otherwise empty.
        why: text before the name of the policy that decides instead, such as "no domain model yet,"; empty if ``code``
            is.
    """

    source: str
    policy: str
    code: str = ""
    why: str = ""

    def preface(self, name: str) -> str:
        """Return a text that the policy ``name`` decides in place of the agent, and why; "" without a ``why``."""
        return f"{self.why} {name} decides" if self.why else ""


def deciding_policy(snapshot: Snapshot, agent: str | None, heuristic: str, *, explained: bool = False) -> DecidedBy:
    """Describe the policy that decides for a workload unless it fails: the agent, else the heuristic. Never raises.

    Args:
        snapshot: the workload.
        agent: name of the agent's policy; None: no agent can decide.
        heuristic: name of the policy that decides without one.
        explained: whether the heuristic's reasons say why no agent decides, unless a rule was chosen.
    """
    if agent is not None:
        return DecidedBy("agent", agent)
    if snapshot.problem:
        return DecidedBy("fallback", heuristic, "fallback", f"{snapshot.problem};")
    if snapshot.rule or not explained:
        return DecidedBy("heuristic", heuristic)
    if snapshot.model is None:
        predicted = f" predicted {snapshot.similar}," if snapshot.similar else ""
        return DecidedBy("heuristic", heuristic, "no_model", f"no domain model yet,{predicted}")
    return DecidedBy("heuristic", heuristic, "no_agent", NO_AGENT)


class Compiled(Protocol):
    """A snapshot compiled for decisions; further attributes are the kind's own.

    Attributes:
        snapshot: the workload.
        agent: argument of ``Serving.choose`` for the promoted agent; None: the heuristic decides.
        heuristic: name of the policy that decides without an agent.
        decided_by: the policy that decides unless it fails.
    """

    snapshot: Snapshot
    agent: Any
    heuristic: str
    decided_by: DecidedBy

    def __hash__(self) -> int:
        """Hash by identity: reports of one compiled workload are decided together."""
        ...


class RunMemory(msgspec.Struct, frozen=True):
    """A run between two reports.

    Attributes:
        state: the run's state, of the kind's own type.
        memories: hidden states [H] of recurrent agents, by agent version; empty: none.
    """

    state: Any
    memories: Memories = artifact.NOTHING


class Choices(msgspec.Struct, frozen=True):
    """Choices for B runs.

    Attributes:
        each: one choice per run, of the kind's own type, [B].
        detail: further results of the kind's ``choose`` that its ``write`` needs; None: none.
        memory: hidden state (H numbers) of a recurrent policy for each run's next decision, [B, H]; None: no such
            policy.
    """

    each: Sequence[Any]
    detail: Any = None
    memory: Memory | None = None


class KindDecision(msgspec.Struct, frozen=True):
    """A decision without the fields common to all kinds.

    Attributes:
        own: the kind's fields of the decision by name, such as the allocation.
        reason: reason of the decision, with ``code`` and ``text``.
        noop: whether the decision leaves the allocation unchanged.
        state: the run's state after the decision, of the kind's own type.
        source, policy: what decided, if other than ``DecidedBy`` says; else None.
        iteration: iteration that the decision is for; None: the one after the report.
        valid: number of iterations that the decision is valid for.
        residuals: evidence of drift in the report; None: the kind watches no streams, or has no domain model.
        risk: reason why the run may miss a target; "": on track, or no target; None: unknown, the last one stays.
        expected_seconds: predicted seconds of the first iteration, in a first decision; None: unknown.
        quiet: whether no report is due until an event happens, however long that takes.
        spending: what the run has cost, and is expected to; None: the kind doesn't tell.
        caps: use of the run's caps, a ``CapUse`` each.
        stop: why the run is to stop; empty: it isn't.
        granted: requested allocation that isn't granted, with the one in force, in the kind's form; None: all is there.
        requested: ``requested``, ``granted``, ``refused`` or ``timed_out`` if a requested allocation got there; else
            empty.
    """

    own: dict[str, Any]
    reason: Any
    noop: bool
    state: Any
    source: str | None = None
    policy: str | None = None
    iteration: int | None = None
    valid: int = 1
    residuals: Residuals | None = None
    risk: str | None = ""
    expected_seconds: float | None = None
    quiet: bool = False
    spending: Spending | None = None
    caps: Sequence[dict[str, Any]] = ()
    stop: str = ""
    granted: dict[str, Any] | None = None
    requested: str = ""


class Serving(ABC):
    """The part of a decision engine that each kind implements: reads reports, chooses actions, writes decisions.

    States are never changed in place. Parameters that several methods share: ``compiled`` is a workload as returned by
    ``compile``, ``batch`` B runs with their reports as returned by ``gather``, and ``agent`` a policy as returned by
    ``agent``, or None for the heuristic."""

    report: type[Part]
    """Type of reports. Equal reports are encoded by ``msgspec`` to equal bytes, in sorted order."""
    failed_shadow: ClassVar[Mapping[str, Any]]
    """Values of the fields of a decision's ``shadow`` if the shadow failed, without ``agent`` and ``problem``."""
    metered: ClassVar[bool] = False
    """Whether decisions state what a run has cost, so that runs can have caps."""

    @abstractmethod
    def compile(self, snapshot: Snapshot) -> Any:
        """Return the kind's ``Compiled`` of a snapshot: all that decisions need and that reports don't change."""

    @abstractmethod
    def begin(self, compiled: Any, start: Any, now: datetime) -> KindDecision:
        """Return the first decision of a run that was started at ``now`` (UTC) with ``start``, the kind's ``RunStart``.

        Raises:
            InvalidInput: ``start`` doesn't fit the workload.
        """

    def begin_within(self, compiled: Any, start: Any, caps: Sequence[Cap], now: datetime) -> KindDecision:
        """Return the first decision of a run with caps that started at ``now`` (UTC); by default these change nothing.
        Raises InvalidInput if ``start`` doesn't fit the workload."""
        return self.begin(compiled, start, now)

    @abstractmethod
    def read(self, compiled: Any, state: Any, iteration: int, report: Any) -> Any:
        """Check a decoded report of ``iteration`` against the run's ``state``, and convert it to the kind's own type.

        Raises:
            InvalidInput: the report doesn't fit the workload.
            Contradiction: it contradicts the run's earlier reports.
        """

    @abstractmethod
    def choose(self, compiled: Any, batch: Any, agent: Any, memory: Memory | None, now: datetime) -> Choices:
        """Choose for each of B runs by ``agent``, or by the heuristic if None; may raise whatever the policy raises.

        ``memory`` [B, H] holds the agent's hidden states; None: all zeros, or the policy has none."""

    @abstractmethod
    def write(self, compiled: Any, batch: Any, choices: Choices, decided_by: DecidedBy) -> list[KindDecision]:
        """Return B decisions for the choices, in the order of the batch; ``decided_by``: the deciding policy."""

    @abstractmethod
    def hold(self, compiled: Any, one: Pending, failure: str) -> KindDecision:
        """Return a decision that keeps the run's allocation after every policy failed. Should not raise.

        ``failure`` describes what failed; the text of the decision's reason begins with it."""

    @abstractmethod
    def compare(self, compiled: Any, batch: Any, row: int, done: Any, other: Choices) -> dict[str, Any]:
        """Compare a shadow's choice for run ``row`` of the batch with the choice ``done`` that was made.

        Returns the kind's fields of the decision's ``shadow`` by name, those of ``failed_shadow``."""

    def decode(self, body: bytes) -> Any:
        """Decode a report from JSON.

        Raises:
            InvalidInput: ``body`` isn't a valid report; it names the invalid fields.
        """
        return decoded(body, self.report)

    def rules(self, compiled: Any) -> Sequence[str]:
        """Return the names of rules that a run may name to decide it (``Snapshot.rule``); () by default."""
        return ()

    def takes_long(self, compiled: Any, state: Any, report: Any) -> bool:
        """Return whether reading and deciding may take over about 10 ms, so that a thread should do it."""
        return False

    def gather(self, compiled: Any, pending: Sequence[Pending]) -> Any:
        """Combine B pending reports of different runs to the batch of ``choose``; by default, return them as given."""
        return pending

    def agent(self, compiled: Any, made: Artifact) -> Any:
        """Convert a trained policy to the ``agent`` argument of ``choose``.

        Raises:
            IncompatibleArtifact: the policy was made for another layout.
        """
        return made

    def query(self, compiled: Any, query: Query) -> Pending | KindDecision:
        """Parse the full state of a run from query parameters; by default, the kind supports no such queries.

        Returns:
            The state as a report to be decided on; a first decision if the query describes a run that hasn't begun.

        Raises:
            InvalidInput: the query doesn't fit the workload, or the kind supports no such queries.
        """
        snapshot = compiled.snapshot
        raise invalid("/query/workload", NO_STATE.format(snapshot.spec.kind), snapshot.name)

    @abstractmethod
    def pack(self, state: Any) -> list[Any]:
        """Return a state as a list of values that JSON can represent; NaN and infinities become null there."""

    @abstractmethod
    def unpack(self, stored: list[Any]) -> Any:
        """Return the state from values that ``pack`` returned; None stands for a number that isn't finite."""

    @abstractmethod
    def weight(self, state: Any) -> int:
        """Approximate size of a state in memory, in bytes."""


class Engine:
    """Decision engine for workloads of one kind; ``serving`` defines states, reports and compiled workloads."""

    def __init__(self, kind: str, decision: type[BaseModel], serving: Serving) -> None:
        self.serving, self._kind, self.report = serving, kind, serving.report
        self._shadowed = "shadow" in decision.model_fields
        self.compile, self.rules, self.decode = serving.compile, serving.rules, serving.decode

    def takes_long(self, compiled: Compiled, kept: RunMemory, report: Any) -> bool:
        """Return whether reading and deciding the decoded report takes so long that a thread should do it."""
        return self.serving.takes_long(compiled, kept.state, report)

    def read(self, compiled: Compiled, kept: RunMemory, iteration: int, report: Any) -> Any:
        """Check a decoded report of ``iteration`` against the run's state, and convert it for ``answer``.

        Raises:
            InvalidInput: the report doesn't fit the workload.
            Contradiction: it contradicts the run's earlier reports.
        """
        return self.serving.read(compiled, kept.state, iteration, report)

    def begin(
        self, compiled: Compiled, run: str | None, start: Any, now: datetime, caps: Sequence[Cap] = ()
    ) -> EncodedDecision:
        """Return the encoded first decision and first state of a run with ``caps`` that starts at ``now`` (UTC).

        Raises:
            InvalidInput: ``start`` doesn't fit the workload.
        """
        serving = self.serving
        first = serving.begin_within(compiled, start, caps, now) if caps else serving.begin(compiled, start, now)
        return self._first_decision(compiled, run, first, now)

    def _first_decision(
        self, compiled: Compiled, run: str | None, first: KindDecision, now: datetime
    ) -> EncodedDecision:
        return _encoded_decision(
            self._envelope(compiled, compiled.decided_by, now), run, None, first, None, artifact.NOTHING
        )

    def parse_state(self, compiled: Compiled, query: Query) -> Pending | KindDecision:
        """Parse the full state of a run from query parameters, for ``answer_states``.

        Raises:
            InvalidInput: the query doesn't fit the workload, or the kind supports no such queries.
        """
        return self.serving.query(compiled, query)

    def answer_states(self, compiled: Compiled, given: Sequence[Pending | KindDecision], now: datetime) -> list[bytes]:
        """Return JSON decisions for results of ``parse_state``, in order; raises the first exception if any fails."""
        turns = [one for one in given if isinstance(one, Pending)]
        answers = iter(self.answer(compiled, turns, now) if turns else ())
        found = [
            next(answers) if isinstance(one, Pending) else self._first_decision(compiled, None, one, now)
            for one in given
        ]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return [one.decision for one in found if isinstance(one, EncodedDecision)]

    def answer(
        self, compiled: Compiled, pending: Sequence[Pending], now: datetime
    ) -> list[EncodedDecision | Exception]:
        """Decide on reports of different runs of one workload at the time ``now`` (UTC). Doesn't raise.

        Returns:
            Decisions in order; an exception in place of a decision for which even ``Serving.hold`` failed.
        """
        try:
            return [*self._decide_all(compiled, pending, compiled.agent, compiled.decided_by, now)]
        except Exception as error:  # noqa: BLE001 - whatever a policy may raise; it is logged where one run fails
            if len(pending) > 1:
                return [found for one in pending for found in self.answer(compiled, [one], now)]
            _log(compiled, pending[0], compiled.decided_by.policy)
            return [
                self._fall_back(compiled, pending[0], f"{compiled.decided_by.policy} failed ({_words(error)})", now)
            ]

    def _fall_back(self, compiled: Compiled, one: Pending, failure: str, now: datetime) -> EncodedDecision | Exception:
        """Return the heuristic's decision in place of a failed agent's; if it fails too, a decision that keeps the
        allocation; if that can't be made either, the exception."""
        if compiled.agent is not None:
            spare = DecidedBy("fallback", compiled.heuristic, "fallback", f"{failure};")
            try:
                return self._decide_all(compiled, [one], None, spare, now)[0]
            except Exception as error:  # noqa: BLE001 - logged
                _log(compiled, one, compiled.heuristic)
                failure += f", and {compiled.heuristic} too ({_words(error)})"
        try:
            held = self.serving.hold(compiled, one, failure)
            envelope = self._envelope(compiled, DecidedBy("fallback", HOLD, "fallback"), now)
            return _encoded_decision(envelope, one.run, one.iteration, held, None, one.state.memories)
        except Exception as error:  # noqa: BLE001 - logged, and returned to the caller
            _log(compiled, one, HOLD)
            return error

    def _decide_all(
        self, compiled: Compiled, pending: Sequence[Pending], agent: Any, decided_by: DecidedBy, now: datetime
    ) -> list[EncodedDecision]:
        """Decide all runs at once, by ``agent`` or, if None, the heuristic; raises whatever the policy raises."""
        serving, version = self.serving, compiled.snapshot.agent_version
        before = [one.state.memories for one in pending]
        batch = serving.gather(compiled, pending)
        memory = None if agent is None else artifact.recalled(before, version)
        choices = serving.choose(compiled, batch, agent, memory, now)
        shadows: list[_ShadowEntry | None] = [None] * len(pending)
        wanted = {id(one.shadow): one.shadow for one in pending if one.shadow is not None}
        for shadow in wanted.values():
            rows = [row for row, one in enumerate(pending) if one.shadow is shadow]
            for row, found in zip(
                rows, self._consult_shadow(compiled, pending, rows, batch, choices, shadow, now), strict=True
            ):
                shadows[row] = found
        answers, envelope = [], self._envelope(compiled, decided_by, now)
        written = serving.write(compiled, batch, choices, decided_by)
        for row, (one, made, other) in enumerate(zip(pending, written, shadows, strict=True)):
            memories = before[row]
            if memories or other is not None or choices.memory is not None:
                own = None if choices.memory is None else choices.memory[row]
                memories = _next_memories(memories, version, own, one.shadow, other)
            consulted = None if other is None else other.fields
            answers.append(_encoded_decision(envelope, one.run, one.iteration, made, consulted, memories))
        return answers

    def _consult_shadow(
        self,
        compiled: Compiled,
        pending: Sequence[Pending],
        rows: Sequence[int],
        batch: Any,
        choices: Choices,
        shadow: Shadow,
        now: datetime,
    ) -> list[_ShadowEntry]:
        """Return a shadow's entry in the decision of each of ``rows``; entries of failed runs name the exception."""
        if shadow.artifact is None:
            return [self._failed_shadow(shadow, shadow.problem)] * len(rows)
        serving = self.serving
        try:
            agent = serving.agent(compiled, shadow.artifact)
            turns = [pending[row] for row in rows]
            part = batch if len(turns) == len(pending) else serving.gather(compiled, turns)
            memory = artifact.recalled([one.state.memories for one in turns], shadow.version)
            other = serving.choose(compiled, part, agent, memory, now)
            compared = [serving.compare(compiled, part, at, choices.each[row], other) for at, row in enumerate(rows)]
        except Exception as error:
            if len(rows) > 1:
                each = (self._consult_shadow(compiled, pending, [row], batch, choices, shadow, now) for row in rows)
                return [one for found in each for one in found]
            logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
            return [
                self._failed_shadow(shadow, str(error) if isinstance(error, IncompatibleArtifact) else _words(error))
            ]
        kept = [None] * len(rows) if other.memory is None else other.memory
        return [
            _ShadowEntry({"agent": shadow.version, **fields, "problem": None}, own)
            for fields, own in zip(compared, kept, strict=True)
        ]

    def _failed_shadow(self, shadow: Shadow, problem: str) -> _ShadowEntry:
        return _ShadowEntry({"agent": shadow.version, **self.serving.failed_shadow, "problem": problem or None})

    def _envelope(self, compiled: Compiled, decided_by: DecidedBy, now: datetime) -> _Envelope:
        snapshot = compiled.snapshot
        return _Envelope(
            self._kind,
            snapshot.name,
            snapshot.answering,
            decided_by.source,
            decided_by.policy,
            timestamp(now),
            self._shadowed,
        )

    def serialise(self, kept: RunMemory) -> msgspec.Raw:
        """Encode a run's state as a JSON list: the kind's packed state, and the agents' memories if there are any."""
        stored: list[Any] = [self.serving.pack(kept.state)]
        if kept.memories:
            stored.append(artifact.stored(kept.memories))
        return msgspec.Raw(msgspec.json.encode(stored))

    def restore(self, stored: list[Any]) -> RunMemory:
        """Return the state from the decoded JSON of ``serialise``; raises any exception that
        ``Serving.unpack`` raises."""
        own, *remembered = stored
        return RunMemory(self.serving.unpack(own), artifact.restored(remembered[0]) if remembered else artifact.NOTHING)

    def weight(self, kept: RunMemory) -> int:
        """Approximate size of a state in memory, in bytes."""
        return self.serving.weight(kept.state) + artifact.weight(kept.memories)


class _ShadowEntry(msgspec.Struct, frozen=True):
    """A shadow's entry ``fields`` in a decision, and its hidden state for the run, [H] (None: not recurrent)."""

    fields: dict[str, Any]
    memory: Memory | None = None


class _Envelope(msgspec.Struct, frozen=True):
    """Fields common to the decisions of a batch.

    ``agent`` is the promoted version (None: none), ``moment`` the time as RFC 3339, and ``shadowed`` whether decisions
    of the kind have a field ``shadow``."""

    kind: str
    workload: str
    agent: int | None
    source: str
    policy: str
    moment: str
    shadowed: bool


def _encoded_decision(
    envelope: _Envelope,
    run: str | None,
    reported: int | None,
    made: KindDecision,
    shadow: dict[str, Any] | None,
    memories: Memories,
) -> EncodedDecision:
    following = 0 if reported is None else reported + 1
    fields = {
        "run": run,
        "workload": envelope.workload,
        "reported": reported,
        "iteration": following if made.iteration is None else made.iteration,
        "noop": made.noop,
        "source": made.source or envelope.source,
        "agent": envelope.agent,
        "policy": made.policy or envelope.policy,
        "reason": made.reason,
        "valid_for_iterations": made.valid,
        "decided_at": envelope.moment,
        "kind": envelope.kind,
        **made.own,
    }
    if envelope.shadowed:
        fields["shadow"] = shadow
    if made.caps:
        fields["caps"] = made.caps
    if made.stop:
        fields["stop"] = True
    if made.granted is not None:
        fields["granted"] = made.granted
    return EncodedDecision(
        _encode(fields),
        RunMemory(made.state, memories),
        made.residuals,
        made.risk,
        made.expected_seconds,
        made.quiet,
        made.spending,
        made.stop,
        made.requested,
    )


def _next_memories(
    before: Memories, champion: int | None, own: Memory | None, shadow: Shadow | None, other: _ShadowEntry | None
) -> Memories:
    """Return the hidden states of champion and shadow after a report; an agent that failed keeps its previous one."""
    found = artifact.memories_of(before, (champion, None if shadow is None else shadow.version))
    if shadow is not None and other is not None and other.memory is not None:
        found[shadow.version] = other.memory.copy()
    if own is not None and champion is not None:
        found[champion] = own.copy()
    return found


def _log(compiled: Compiled, one: Pending, policy: str) -> None:
    logger.exception("workload %s: run %s can't be decided by %s", compiled.snapshot.name, one.run, policy)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
