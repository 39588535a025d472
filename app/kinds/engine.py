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

from app.kinds.contract.engine import Answered, Pending, Query, Residuals, Shadow, Snapshot
from app.kinds.contract.inputs import invalid, timestamp
from app.kinds.fields import Part, decoded
from app.policies import artifact
from app.policies.artifact import Artifact, Memories, Memory
from app.policies.base import IncompatibleArtifact

logger = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode

HOLD = "hold"
"""Policy name of a decision that keeps the allocation because everything else failed."""
NO_AGENT = "no agent is promoted,"
NO_STATE = (
    "workloads of kind {} are decided for in runs: start one with POST /runs, report to it, and read the answer again "
    "with GET /decision?run=…"
)


class Voice(msgspec.Struct, frozen=True):
    """The deciding policy, as decisions describe it.

    Attributes:
        source, policy: fields of decisions.
        code: code of the reason if no agent decides although one could; otherwise empty.
        why: text before the name of the policy that decides instead, such as "no domain model yet,"; empty if ``code``
            is.
    """

    source: str
    policy: str
    code: str = ""
    why: str = ""

    def preface(self, name: str) -> str:
        """Text that the policy ``name`` decides in place of the agent, and why; empty if an agent decides as usual."""
        return f"{self.why} {name} answers" if self.why else ""


def voice(snapshot: Snapshot, agent: str | None, heuristic: str, *, explained: bool = False) -> Voice:
    """The policy that decides for a workload unless it fails.

    Args:
        snapshot: the workload.
        agent: name of the agent's policy; None: no agent can decide.
        heuristic: name of the policy that decides without one.
        explained: whether the heuristic's reasons say why no agent decides, unless a rule was chosen.
    """
    if agent is not None:
        return Voice("agent", agent)
    if snapshot.problem:
        return Voice("fallback", heuristic, "fallback", f"{snapshot.problem};")
    if snapshot.rule or not explained:
        return Voice("heuristic", heuristic)
    if snapshot.model is None:
        return Voice("heuristic", heuristic, "no_model", "no domain model yet,")
    return Voice("heuristic", heuristic, "no_agent", NO_AGENT)


class Compiled(Protocol):
    """A snapshot compiled for decisions; further attributes are the kind's own.

    Attributes:
        snapshot: the workload.
        agent: argument of ``Serving.choose`` for the promoted agent; None: the heuristic decides.
        heuristic: name of the policy that decides without an agent.
        voice: the policy that decides unless it fails.
    """

    snapshot: Snapshot
    agent: Any
    heuristic: str
    voice: Voice

    def __hash__(self) -> int:
        """Hash by identity: reports of one compiled workload are decided together."""
        ...


class Kept(msgspec.Struct, frozen=True):
    """A run between two reports: the kind's state, and the memories of recurrent agents."""

    state: Any
    memories: Memories = artifact.NOTHING


class Choices(msgspec.Struct, frozen=True):
    """Choices for B runs.

    Attributes:
        each: one choice per run, [B].
        detail: further input of ``Serving.write``.
        memory: memory of a recurrent policy for each run's next decision, [B, H]; None: none.
    """

    each: Sequence[Any]
    detail: Any = None
    memory: Memory | None = None


class Written(msgspec.Struct, frozen=True):
    """A decision without the fields common to all kinds.

    Attributes:
        own: the kind's fields by name.
        reason: with ``code`` and ``text``.
        noop: whether nothing changes.
        state: of the run after the decision.
        source, policy: replace those of the voice; None: they hold.
        iteration: that the decision is for; None: the one after the report.
        valid: number of iterations it is valid for.
        residuals, risk, expected_seconds, quiet: as in ``Answered``.
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


class Serving(ABC):
    """How runs of one kind are read, decided and written. States are never changed in place.

    ``batch`` is the result of ``gather``, ``agent`` the result of ``agent``, or None for the heuristic."""

    report: type[Part]
    """Type of reports. Equal reports are encoded by ``msgspec`` to equal bytes, in sorted order."""
    silent: ClassVar[Mapping[str, Any]]
    """Fields of a shadow that failed, without ``agent`` and ``problem``."""

    @abstractmethod
    def compile(self, snapshot: Snapshot) -> Any:
        """Compute everything that decisions need and reports don't change."""

    @abstractmethod
    def begin(self, compiled: Any, start: Any, now: datetime) -> Written:
        """First decision of a run; ``start`` is of the kind's model.

        Raises:
            InvalidInput: ``start`` doesn't fit the workload.
        """

    @abstractmethod
    def read(self, compiled: Any, state: Any, iteration: int, report: Any) -> Any:
        """Convert a decoded report for ``gather``.

        Raises:
            InvalidInput: the report doesn't fit the workload.
            Contradiction: it contradicts the run's earlier reports.
        """

    @abstractmethod
    def choose(self, compiled: Any, batch: Any, agent: Any, memory: Memory | None, now: datetime) -> Choices:
        """Choice of the agent, or the heuristic if None, for each run; ``memory`` [B, H] is the agent's."""

    @abstractmethod
    def write(self, compiled: Any, batch: Any, choices: Choices, voice: Voice) -> list[Written]:
        """Decisions for the choices, in order."""

    @abstractmethod
    def hold(self, compiled: Any, one: Pending, failure: str) -> Written:
        """Decision that keeps the allocation after all else failed; ``failure`` begins its text. Must not fail."""

    @abstractmethod
    def compare(self, compiled: Any, batch: Any, row: int, done: Any, other: Choices) -> dict[str, Any]:
        """A shadow's choice for one run compared with the choice ``done``, as the fields of ``silent``."""

    def decode(self, body: bytes) -> Any:
        """Decode a report.

        Raises:
            InvalidInput: ``body`` is not a valid report; every invalid field is named.
        """
        return decoded(body, self.report)

    def rules(self, compiled: Any) -> Sequence[str]:
        """Names of the rules that may decide a run; ``Snapshot.rule`` is one of them."""
        return ()

    def takes_long(self, compiled: Any, state: Any, report: Any) -> bool:
        """Whether reading and deciding may take more than some 10 ms, so that a thread should do it."""
        return False

    def gather(self, compiled: Any, pending: Sequence[Pending]) -> Any:
        """Combine pending runs to be decided together."""
        return pending

    def agent(self, compiled: Any, made: Artifact) -> Any:
        """Convert an artifact to the ``agent`` argument of ``choose``.

        Raises:
            IncompatibleArtifact: it was made for another layout.
        """
        return made

    def query(self, compiled: Any, query: Query) -> Pending | Written:
        """State given in full by a query; the first decision if the query describes a run that hasn't begun.

        Raises:
            InvalidInput: it doesn't fit the workload, or the kind supports no such queries.
        """
        snapshot = compiled.snapshot
        raise invalid("/query/workload", NO_STATE.format(snapshot.spec.kind), snapshot.name)

    @abstractmethod
    def pack(self, state: Any) -> list[Any]:
        """A state as plain values, for JSON."""

    @abstractmethod
    def unpack(self, stored: list[Any]) -> Any:
        """The state from values that ``pack`` returned; null stands for numbers that aren't finite."""

    @abstractmethod
    def weight(self, state: Any) -> int:
        """Approximate size of a state in memory, in bytes."""


class Engine:
    """Decision engine for workloads of one kind; ``serving`` defines states, reports and compiled workloads."""

    def __init__(self, kind: str, decision: type[BaseModel], serving: Serving) -> None:
        self.serving, self._kind, self.report = serving, kind, serving.report
        self._shadowed = "shadow" in decision.model_fields
        self.compile, self.rules, self.decode = serving.compile, serving.rules, serving.decode

    def takes_long(self, compiled: Compiled, kept: Kept, report: Any) -> bool:
        """Whether a thread should read and decide the decoded report."""
        return self.serving.takes_long(compiled, kept.state, report)

    def read(self, compiled: Compiled, kept: Kept, iteration: int, report: Any) -> Any:
        """Convert a decoded report for ``answer``.

        Raises:
            InvalidInput: the report doesn't fit the workload.
            Contradiction: it contradicts the run's earlier reports.
        """
        return self.serving.read(compiled, kept.state, iteration, report)

    def begin(self, compiled: Compiled, run: str | None, start: Any, now: datetime) -> Answered:
        """First decision and first state of a run.

        Raises:
            InvalidInput: ``start`` doesn't fit the workload.
        """
        return self._begun(compiled, run, self.serving.begin(compiled, start, now), now)

    def _begun(self, compiled: Compiled, run: str | None, first: Written, now: datetime) -> Answered:
        return _answered(self._envelope(compiled, compiled.voice, now), run, None, first, None, artifact.NOTHING)

    def parse_state(self, compiled: Compiled, query: Query) -> Pending | Written:
        """State given in full by a query, for ``answer_states``.

        Raises:
            InvalidInput: it doesn't fit the workload, or the kind supports no such queries.
        """
        return self.serving.query(compiled, query)

    def answer_states(self, compiled: Compiled, given: Sequence[Pending | Written], now: datetime) -> list[bytes]:
        """Encoded decisions for results of ``parse_state``, in order; raises the first exception if any fails."""
        turns = [one for one in given if isinstance(one, Pending)]
        answers = iter(self.answer(compiled, turns, now) if turns else ())
        found = [next(answers) if isinstance(one, Pending) else self._begun(compiled, None, one, now) for one in given]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return [one.decision for one in found if isinstance(one, Answered)]

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered | Exception]:
        """Decisions for reports of different runs of one workload, in order; an exception in place of a decision that
        failed."""
        try:
            return [*self._decided(compiled, pending, compiled.agent, compiled.voice, now)]
        except Exception as error:  # noqa: BLE001 - whatever a policy may raise; it is logged where one run fails
            if len(pending) > 1:
                return [found for one in pending for found in self.answer(compiled, [one], now)]
            _log(compiled, pending[0], compiled.voice.policy)
            return [self._fallen_back(compiled, pending[0], f"{compiled.voice.policy} failed ({_words(error)})", now)]

    def _fallen_back(self, compiled: Compiled, one: Pending, failure: str, now: datetime) -> Answered | Exception:
        """The heuristic's decision after an agent failed, or the decision to hold; an exception if that fails too."""
        if compiled.agent is not None:
            spare = Voice("fallback", compiled.heuristic, "fallback", f"{failure};")
            try:
                return self._decided(compiled, [one], None, spare, now)[0]
            except Exception as error:  # noqa: BLE001 - logged
                _log(compiled, one, compiled.heuristic)
                failure += f", and {compiled.heuristic} too ({_words(error)})"
        try:
            held = self.serving.hold(compiled, one, failure)
            envelope = self._envelope(compiled, Voice("fallback", HOLD, "fallback"), now)
            return _answered(envelope, one.run, one.iteration, held, None, one.state.memories)
        except Exception as error:  # noqa: BLE001 - logged, and returned to the caller
            _log(compiled, one, HOLD)
            return error

    def _decided(
        self, compiled: Compiled, pending: Sequence[Pending], agent: Any, speaks: Voice, now: datetime
    ) -> list[Answered]:
        """Decide all runs at once, by one agent or the heuristic; exceptions propagate."""
        serving, version = self.serving, compiled.snapshot.agent_version
        before = [one.state.memories for one in pending]
        batch = serving.gather(compiled, pending)
        memory = None if agent is None else artifact.recalled(before, version)
        choices = serving.choose(compiled, batch, agent, memory, now)
        shadows: list[_Consulted | None] = [None] * len(pending)
        wanted = {id(one.shadow): one.shadow for one in pending if one.shadow is not None}
        for shadow in wanted.values():
            rows = [row for row, one in enumerate(pending) if one.shadow is shadow]
            for row, found in zip(
                rows, self._consulted(compiled, pending, rows, batch, choices, shadow, now), strict=True
            ):
                shadows[row] = found
        answers, envelope = [], self._envelope(compiled, speaks, now)
        written = serving.write(compiled, batch, choices, speaks)
        for row, (one, made, other) in enumerate(zip(pending, written, shadows, strict=True)):
            memories = before[row]
            if memories or other is not None or choices.memory is not None:
                own = None if choices.memory is None else choices.memory[row]
                memories = _remembered(memories, version, own, one.shadow, other)
            consulted = None if other is None else other.fields
            answers.append(_answered(envelope, one.run, one.iteration, made, consulted, memories))
        return answers

    def _consulted(
        self,
        compiled: Compiled,
        pending: Sequence[Pending],
        rows: Sequence[int],
        batch: Any,
        choices: Choices,
        shadow: Shadow,
        now: datetime,
    ) -> list[_Consulted]:
        """A shadow's decisions for ``rows`` of the batch; after an exception, entries with its text instead."""
        if shadow.artifact is None:
            return [self._silent(shadow, shadow.problem)] * len(rows)
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
                each = (self._consulted(compiled, pending, [row], batch, choices, shadow, now) for row in rows)
                return [one for found in each for one in found]
            logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
            return [self._silent(shadow, str(error) if isinstance(error, IncompatibleArtifact) else _words(error))]
        kept = [None] * len(rows) if other.memory is None else other.memory
        return [
            _Consulted({"agent": shadow.version, **fields, "problem": None}, own)
            for fields, own in zip(compared, kept, strict=True)
        ]

    def _silent(self, shadow: Shadow, problem: str) -> _Consulted:
        return _Consulted({"agent": shadow.version, **self.serving.silent, "problem": problem or None})

    def _envelope(self, compiled: Compiled, speaks: Voice, now: datetime) -> _Envelope:
        snapshot = compiled.snapshot
        return _Envelope(
            self._kind, snapshot.name, snapshot.answering, speaks.source, speaks.policy, timestamp(now), self._shadowed
        )

    def serialise(self, kept: Kept) -> msgspec.Raw:
        """A run's state as JSON: the kind's own, and the memories of agents if there are any."""
        stored: list[Any] = [self.serving.pack(kept.state)]
        if kept.memories:
            stored.append(artifact.stored(kept.memories))
        return msgspec.Raw(msgspec.json.encode(stored))

    def restore(self, stored: list[Any]) -> Kept:
        """The state from JSON that ``serialise`` returned."""
        own, *remembered = stored
        return Kept(self.serving.unpack(own), artifact.restored(remembered[0]) if remembered else artifact.NOTHING)

    def weight(self, kept: Kept) -> int:
        """Approximate size of a state in memory, in bytes."""
        return self.serving.weight(kept.state) + artifact.weight(kept.memories)


class _Consulted(msgspec.Struct, frozen=True):
    """A shadow's entry in a decision, and its memory of the run, [H]."""

    fields: dict[str, Any]
    memory: Memory | None = None


class _Envelope(msgspec.Struct, frozen=True):
    """Fields common to the decisions of a batch; ``shadowed``: whether decisions of the kind have a ``shadow``."""

    kind: str
    workload: str
    agent: int | None
    source: str
    policy: str
    moment: str
    shadowed: bool


def _answered(
    envelope: _Envelope,
    run: str | None,
    reported: int | None,
    made: Written,
    shadow: dict[str, Any] | None,
    memories: Memories,
) -> Answered:
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
    kept = Kept(made.state, memories)
    return Answered(_encode(fields), kept, made.residuals, made.risk, made.expected_seconds, made.quiet)


def _remembered(
    before: Memories, champion: int | None, own: Memory | None, shadow: Shadow | None, other: _Consulted | None
) -> Memories:
    """Memories of champion and shadow after a report; the previous one is kept for an agent that failed."""
    found = artifact.kept(before, (champion, None if shadow is None else shadow.version))
    if shadow is not None and other is not None and other.memory is not None:
        found[shadow.version] = other.memory.copy()
    if own is not None and champion is not None:
        found[champion] = own.copy()
    return found


def _log(compiled: Compiled, one: Pending, policy: str) -> None:
    logger.exception("workload %s: run %s can't be decided by %s", compiled.snapshot.name, one.run, policy)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
