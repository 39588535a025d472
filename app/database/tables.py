"""Tables of the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Double, ForeignKey, Index, LargeBinary, String, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, attribute_keyed_dict, mapped_column, relationship

from app.database.base import DEFAULT_TENANT, Base, CreatedMixin, Identifier, IdMixin, TenantMixin, utc_now
from app.database.packing import packed, unpacked, unpacked_size

# Runs: live executions that Steward decides for.


DRIFTED = text("drifts > 0")  # no parameter in it, or no database would see that the index below fits
ENDED = text("finished_at IS NOT NULL")
JUDGED = text("outcome IN ('met', 'missed', 'failed')")


class Run(IdMixin, TenantMixin, CreatedMixin, Base):
    """A live run; `state_vector` is the packed state after the last reported iteration."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_runs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_runs_tenant_state_created_at_id", "tenant", "state", "created_at", "id"),
        Index("ix_runs_drifted", "workload_id", "created_at", "id", sqlite_where=DRIFTED, postgresql_where=DRIFTED),
        Index("ix_runs_workload_id_shadow_version", "workload_id", "shadow_version"),
        Index("ix_runs_outcome_tenant_created_at_id", "outcome", "tenant", "created_at", "id"),
        Index("ix_runs_finished_at", "finished_at", sqlite_where=ENDED, postgresql_where=ENDED),
        Index("ix_runs_judged", "workload_id", "finished_at", "id", sqlite_where=JUDGED, postgresql_where=JUDGED),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    agent_version: Mapped[int | None]
    shadow_version: Mapped[int | None]
    """Agent that is consulted too."""
    state: Mapped[str] = mapped_column(String(16), default="running")
    """running, finished, failed or cancelled."""
    outcome: Mapped[str] = mapped_column(String(16), default="on_track", server_default="on_track")
    """on_track or at_risk while it runs; met, missed, failed, cancelled or completed when it has ended."""
    outcome_reason: Mapped[str | None]
    expected_seconds: Mapped[float | None]
    """Seconds that its first iteration was predicted to take; none where nothing predicts it."""
    quiet: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its next report need not come before something happens: it is never stale."""
    start: Mapped[dict[str, Any]]
    """What it was started with, as its kind has it."""
    state_vector: Mapped[list[Any]]
    next_iteration: Mapped[int] = mapped_column(default=0)
    decision: Mapped[dict[str, Any]]
    """The decision the run was started with."""
    finished_at: Mapped[datetime | None]
    kept_from: Mapped[int | None]
    """The first iteration that is stored, where earlier ones were deleted by age, or were not this run's."""
    drift: Mapped[dict[str, Any] | None]
    """What the test for drifts keeps, and what it has noticed; none before the first report that tells of one."""
    drifts: Mapped[int] = mapped_column(default=0)
    """How many it has noticed."""


RULED = Run.start["policy"].as_string().is_not(None)
"""Of runs that name the rule that decides for them."""


# Champions: which agent of a workload answers in which role.


class Champion(TenantMixin, Base):
    """The agent that answers in one role of a workload; without a row, a heuristic does."""

    __tablename__ = "champions"

    workload_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True
    )
    role: Mapped[str] = mapped_column(String(63), primary_key=True)
    version: Mapped[int]


# Workloads: what is allocated for, as registered.


class Workload(IdMixin, TenantMixin, CreatedMixin, Base):
    """A registered workload; `revision` grows with whatever changes its decisions, so that caches can poll it."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("tenant", "name"),)

    name: Mapped[str] = mapped_column(String(63))
    kind: Mapped[str] = mapped_column(String(63))
    spec: Mapped[dict[str, Any]]
    spec_version: Mapped[int] = mapped_column(default=1)
    revision: Mapped[int] = mapped_column(default=1)
    drift: Mapped[dict[str, Any] | None]
    """How drifts are to be answered, as `app.drift.steps` has it; none: they are only noticed."""
    retention: Mapped[dict[str, Any] | None]
    """How long what hangs on it is kept, as `app.retention.schemas` has it; none: as the settings say."""
    deleted_agent: Mapped[int | None]
    deleted_model: Mapped[int | None]
    """The newest versions that were deleted; their numbers are not given again."""
    champions: Mapped[dict[str, Champion]] = relationship(
        collection_class=attribute_keyed_dict("role"),
        cascade="all, delete-orphan",
        passive_deletes=True,
        lazy="selectin",
        order_by=Champion.role,
    )
    """By role."""

    def champion(self, role: str) -> int | None:
        """Version of the agent that answers in a role; None: a heuristic does."""
        found = self.champions.get(role)
        return None if found is None else found.version


# Agents: trained versions of a workload's policy.


class Agent(IdMixin, TenantMixin, CreatedMixin, Base):
    """One trained agent; `artifact` is the exported policy (JSON header and safetensors arrays)."""

    __tablename__ = "agents"
    __table_args__ = (UniqueConstraint("workload_id", "version"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    version: Mapped[int]
    spec_version: Mapped[int]
    model_version: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(63))
    seed: Mapped[int]
    report: Mapped[dict[str, Any]]
    artifact: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    promoted: Mapped[bool] = mapped_column(default=False)
    """Whether it has ever been made the one that answers."""


# Domain models: fitted versions of a workload's response to its resources.


class DomainModel(IdMixin, TenantMixin, CreatedMixin, Base):
    """One fitted model; `table` is the exported dense table (safetensors)."""

    __tablename__ = "domain_models"
    __table_args__ = (UniqueConstraint("workload_id", "version"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    version: Mapped[int]
    spec_version: Mapped[int]
    report: Mapped[dict[str, Any]]
    table: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


# Promotions: which agent answered since when, and which one before it.


class Promotion(IdMixin, TenantMixin, CreatedMixin, Base):
    """A change of a workload's champion in one role; null versions stand for the heuristics."""

    __tablename__ = "promotions"
    __table_args__ = (Index("ix_promotions_workload_id_created_at", "workload_id", "created_at"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    role: Mapped[str] = mapped_column(String(63))
    agent_version: Mapped[int | None]
    previous: Mapped[int | None]
    reason: Mapped[str] = mapped_column(String(1024))
    made_by: Mapped[str] = mapped_column(String(16), default="request")
    """request, training or drift."""
    figures: Mapped[dict[str, Any] | None]


# Executions: samples of past runs of a workload.


class Execution(IdMixin, TenantMixin, CreatedMixin, Base):
    """One execution; what `data` is depends on the kind of the workload, and stands in its codec (`app.samples`)."""

    __tablename__ = "executions"
    __table_args__ = (
        UniqueConstraint("workload_id", "name"),
        Index("ix_executions_workload_id_created_at_id", "workload_id", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    """The client's own identifier of the execution."""
    digest: Mapped[str] = mapped_column(String(64))
    iterations: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    summary: Mapped[dict[str, Any] | None]
    """What lists tell of `data`, as its kind gives it; null: stored before there were summaries, and not listed since.
    """
    source: Mapped[str] = mapped_column(String(16), default="upload")
    """'upload' or 'run'."""


# Exogenous rows: what is forecast from outside of a workload, as it was issued.


class ExogenousRow(TenantMixin, Base):
    """What an issue of a series says of one time."""

    __tablename__ = "exogenous"

    workload_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True
    )
    series: Mapped[str] = mapped_column(String(63), primary_key=True)
    time: Mapped[datetime] = mapped_column(primary_key=True)
    issued_at: Mapped[datetime] = mapped_column(primary_key=True)
    mean: Mapped[float] = mapped_column(Double)
    low: Mapped[float] = mapped_column(Double)
    high: Mapped[float] = mapped_column(Double)


# Iterations: what a run reported, and what it was told.


class Iteration(Base):
    """One reported iteration of a run with the decision it was answered with, both in `packed`."""

    __tablename__ = "iterations"

    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT)
    digest: Mapped[str] = mapped_column(String(64))
    packed: Mapped[bytes] = mapped_column(LargeBinary)
    reported_at: Mapped[datetime] = mapped_column(default=utc_now)

    @classmethod
    def of(cls, run: str, iteration: int, report: Any, decision: Any, **values: Any) -> Iteration:
        """A row of a report and a decision, both anything that JSON can hold."""
        pack = packed(run, msgspec.json.encode(report), msgspec.json.encode(decision))
        return cls(run_id=run, iteration=iteration, packed=pack, **values)

    @property
    def size(self) -> int:
        """Bytes of both, as JSON."""
        return unpacked_size(self.packed)

    @property
    def report(self) -> dict[str, Any]:
        """The report as JSON values, unpacked at each access."""
        return self._unpacked(0)

    @property
    def decision(self) -> dict[str, Any]:
        """The decision that answered the report, as JSON values."""
        return self._unpacked(1)

    def _unpacked(self, which: int) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(unpacked(self.run_id, self.packed)[which])
        return found


# Jobs: work for the workers. This table is the truth; the broker only wakes workers up.


class Job(IdMixin, TenantMixin, CreatedMixin, Base):
    """A job. Who holds its lease is (`owner`, `fence`) until `lease_expires_at`; each new lease has a higher fence,
    and every write of a worker names the fence it holds."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_jobs_state_lease_expires_at", "state", "lease_expires_at"),
    )

    type: Mapped[str] = mapped_column(String(16))
    """'fit', 'train', 'trial' or 'evaluate'."""
    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), index=True)
    request: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    """Of a tenant's jobs that wait, those of a higher one begin first."""
    state: Mapped[str] = mapped_column(String(16), default="queued")
    """queued, running, waiting (for jobs of its family or a time; nobody holds it), succeeded, failed or cancelled."""
    progress: Mapped[float] = mapped_column(default=0.0)
    eta_seconds: Mapped[float | None]
    attempts: Mapped[int] = mapped_column(default=0)
    error: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    checkpoint: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(String(255))
    fence: Mapped[int] = mapped_column(default=0)
    lease_expires_at: Mapped[datetime | None]
    enqueued_at: Mapped[datetime | None]
    """When it was last announced to the broker."""
    not_before: Mapped[datetime | None]
    """When a job that waits for a time goes on."""
    traceparent: Mapped[str | None] = mapped_column(String(55))
    """The span of whoever asked for it (W3C Trace Context), which the worker's goes on from."""
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


# Job events: what a job told about itself, in order.


class JobEvent(TenantMixin, CreatedMixin, Base):
    """One event of a job; sequence counts from 1."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    data: Mapped[dict[str, Any]]


# Trials: the learners of one training, each a job of its own, that compete for one agent.


class Trial(TenantMixin, CreatedMixin, Base):
    """One trial. Its job's row holds lease, state and the learner's checkpoint; this one how it stands."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    parent_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    """The training that it belongs to."""
    number: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int]
    until: Mapped[float]
    """The share of its budget at which it rests and is compared."""
    rungs: Mapped[int] = mapped_column(default=0)
    """How many comparisons it has reached."""
    share: Mapped[float] = mapped_column(default=0.0)
    """How much of its budget it has used."""
    score: Mapped[float | None]
    """Mean return of the best policy that it had at a comparison, on the validation episodes."""
    ended: Mapped[str | None] = mapped_column(String(1024))
    """Why it was stopped; none while it goes on, and where it went to its end."""
    report: Mapped[dict[str, Any] | None]
    artifact: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """That best policy; forgotten once the training has ended."""


# Evaluations: agents judged by the evaluation protocol.


class Evaluation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One evaluation; `page` is its report for people, an HTML document compressed by zlib."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index("ix_evaluations_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_evaluations_tenant_created_at_id", "tenant", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    model_version: Mapped[int]
    request: Mapped[dict[str, Any]]
    """As asked for, with agents and model resolved to versions."""
    verdicts: Mapped[list[Any]]
    """Of each agent: its version, its class, and why it is no higher."""
    report: Mapped[dict[str, Any]] = mapped_column(deferred=True)
    page: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


# Adaptations: what was done about a drift that was noticed, step by step.


class Adaptation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One answer to a drift; a workload has one at a time that goes on."""

    __tablename__ = "adaptations"
    __table_args__ = (UniqueConstraint("workload_id", "going_on"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    going_on: Mapped[bool | None]
    """True, or none once it is over: so that only one is True."""
    state: Mapped[str] = mapped_column(String(16))
    """fitting, training, shadow, watched; at its end kept, rolled_back, rejected, superseded or failed."""
    request: Mapped[dict[str, Any]]
    """How the workload said that drifts are to be answered, when it began."""
    run_id: Mapped[str] = mapped_column(Identifier)
    """The run that noticed."""
    notice: Mapped[dict[str, Any]]
    job_id: Mapped[str | None] = mapped_column(Identifier)
    """Whose end is waited for."""
    model_version: Mapped[int | None]
    agent_version: Mapped[int | None]
    """Who is tried."""
    predecessor: Mapped[int | None]
    """Who answered when it began; none for a heuristic."""
    marks: Mapped[dict[str, Any]]
    """By run, the iteration that was to be reported next when the shadow began."""
    steps: Mapped[list[Any]]
    """What was done when, why, and on which figures."""
    finished_at: Mapped[datetime | None]


# API keys and the tokens of runs: what is kept of a secret is its hash.


class Key(TenantMixin, CreatedMixin, Base):
    """An API key. Rows are never deleted: a service that once had a key asks for one for ever."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its secret, 256 random bits, which needs no slow hash."""
    scopes: Mapped[list[Any]]
    created_by: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)  # counted twice a second


class RunToken(TenantMixin, CreatedMixin, Base):
    """A token of one run; void once the key that asked for it is revoked."""

    __tablename__ = "run_tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(String(64))
    key_id: Mapped[str | None] = mapped_column(String(16))
    """The key that asked for it; none where another credential did."""


# The audit: who changed what, when.


class AuditEntry(IdMixin, TenantMixin, CreatedMixin, Base):
    """One change; it is written in the transaction that makes the change."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_tenant_created_at_id", "tenant", "created_at", "id"),)

    actor: Mapped[str] = mapped_column(String(255))
    """`key:<id>`, `subject:<issuer's name>`, `run:<id>`, `anybody` (no keys are asked for), or a process: `command`."""
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str] = mapped_column(String(255))
    address: Mapped[str | None] = mapped_column(String(64))
    """From where the request came, as the server or a proxy that is trusted says."""
    detail: Mapped[dict[str, Any] | None]


# Idempotency keys: what a creating request was answered, so that its repeat is answered the same.


class IdempotencyKey(CreatedMixin, Base):
    """A key that a caller sent; without `status` its request is still in flight."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("ix_idempotency_keys_created_at", "created_at"),)

    tenant: Mapped[str] = mapped_column(String(63), primary_key=True, default=DEFAULT_TENANT)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    claim: Mapped[str] = mapped_column(String(32))
    """Random token of the request that holds the key."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of method, path and body."""
    status: Mapped[int | None]
    body: Mapped[dict[str, Any] | None]
    headers: Mapped[dict[str, Any] | None]


# Leases: tasks that one process at a time does, and which one it is.


class Lease(TenantMixin, Base):
    """Who does a task, until when by the database's time."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    owner: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime]


# Workers: who is there to learn, and when each was last seen.


class Worker(TenantMixin, Base):
    """A worker process's heartbeat."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime] = mapped_column(index=True)
