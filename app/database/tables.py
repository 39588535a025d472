"""SQLAlchemy tables of the service's database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Double, ForeignKey, Index, LargeBinary, String, UniqueConstraint, false, func, text
from sqlalchemy.orm import Mapped, attribute_keyed_dict, mapped_column, relationship

from app.database.base import DEFAULT_TENANT, Base, CreatedMixin, Identifier, IdMixin, TenantMixin, utc_now
from app.database.packing import pack_iteration, unpack_iteration, unpacked_size

# Runs: executions whose allocations Steward decides while they run.


DRIFTED = text("drifts > 0")  # no parameter in it, or no database would see that the index below fits
ENDED = text("finished_at IS NOT NULL")
SAVED = text("savings IS NOT NULL")
JUDGED = text("outcome IN ('met', 'missed', 'failed')")


class Run(IdMixin, TenantMixin, CreatedMixin, Base):
    """A run. `state_vector` is its kind's packed state after the last report; costs are in the settings' currency."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_runs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_runs_tenant_state_created_at_id", "tenant", "state", "created_at", "id"),
        Index("ix_runs_drifted", "workload_id", "created_at", "id", sqlite_where=DRIFTED, postgresql_where=DRIFTED),
        Index("ix_runs_workload_id_shadow_version", "workload_id", "shadow_version"),
        Index("ix_runs_outcome_tenant_created_at_id", "outcome", "tenant", "created_at", "id"),
        Index("ix_runs_finished_at", "finished_at", sqlite_where=ENDED, postgresql_where=ENDED),
        Index("ix_runs_saved", "workload_id", "finished_at", sqlite_where=SAVED, postgresql_where=SAVED),
        Index("ix_runs_judged", "workload_id", "finished_at", "id", sqlite_where=JUDGED, postgresql_where=JUDGED),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    agent_version: Mapped[int | None]
    shadow_version: Mapped[int | None]
    """Version of the agent whose decisions are recorded as a shadow; NULL: none."""
    state: Mapped[str] = mapped_column(String(16), default="running")
    """running, finished, failed or cancelled."""
    outcome: Mapped[str] = mapped_column(String(16), default="on_track", server_default="on_track")
    """on_track or at_risk while it runs; met, missed, failed, cancelled, cap_reached or completed when it has ended."""
    outcome_reason: Mapped[str | None]
    expected_seconds: Mapped[float | None]
    """Predicted seconds of its first iteration; NULL without a prediction."""
    quiet: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether no report is due until an event happens; such a run is never stale."""
    start: Mapped[dict[str, Any]]
    """Its start parameters, by its kind's schema."""
    state_vector: Mapped[list[Any]]
    next_iteration: Mapped[int] = mapped_column(default=0)
    decision: Mapped[dict[str, Any]]
    """Its first decision, made when it was started."""
    finished_at: Mapped[datetime | None]
    kept_from: Mapped[int | None]
    """Number of the first stored iteration if earlier ones were deleted or belong to another run; NULL: all are stored.
    """
    drift: Mapped[dict[str, Any] | None]
    """State and notices of the sequential drift test; NULL before the first report with residuals."""
    drifts: Mapped[int] = mapped_column(default=0)
    """Number of drift notices."""
    changes: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of changes of `start`; a report that was decided before the last one is not written, but decided anew."""
    output: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Last lines of its process's output, UTF-8; NULL: not sent. No archive has it."""
    savings: Mapped[dict[str, Any] | None]
    """What it saved against other allocations (`app.kinds.contract.savings.Savings`), stored once it has finished; NULL
    if its kind doesn't compute it, or not from its data."""
    cost: Mapped[float] = mapped_column(Double, default=0.0, server_default="0")
    seconds: Mapped[float] = mapped_column(Double, default=0.0, server_default="0")
    """Cost of the reported iterations and sum of their seconds; 0 if its kind doesn't state them."""
    next_cost: Mapped[float] = mapped_column(Double, default=0.0, server_default="0")
    next_seconds: Mapped[float] = mapped_column(Double, default=0.0, server_default="0")
    """What the iteration under way is expected to add to them; 0 once the run has ended."""


RULED = Run.start["policy"].as_string().is_not(None)
"""SQL condition: the run names the rule that decides for it."""
ADVISED = func.coalesce(Run.start["mode"].as_string(), "") == "advise"
"""SQL condition: decisions of the run are recommendations that are not applied."""


# Champions: which agent of a workload serves decisions in which role.


class Champion(TenantMixin, Base):
    """The agent that serves decisions in one role of a workload; without a row, a heuristic serves them."""

    __tablename__ = "champions"

    workload_id: Mapped[str] = mapped_column(
        Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True
    )
    role: Mapped[str] = mapped_column(String(63), primary_key=True)
    version: Mapped[int]


# Workloads: what resources are allocated for.


class Workload(IdMixin, TenantMixin, CreatedMixin, Base):
    """A registered workload; `revision` counts the changes that affect its decisions, for caches."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("tenant", "name"),)

    name: Mapped[str] = mapped_column(String(63))
    kind: Mapped[str] = mapped_column(String(63))
    spec: Mapped[dict[str, Any]]
    spec_version: Mapped[int] = mapped_column(default=1)
    revision: Mapped[int] = mapped_column(default=1)
    drift: Mapped[dict[str, Any] | None]
    """How to respond to drift (schema in `app.drift.steps`); NULL: drift is only recorded."""
    retention: Mapped[dict[str, Any] | None]
    """Retention times (schema in `app.retention.batches`); NULL: those of the settings."""
    prior: Mapped[dict[str, Any] | None]
    """Prior knowledge from the tenant's earlier workloads (schema in `app.workloads.priors`); NULL: not made yet."""
    deleted_agent: Mapped[int | None]
    deleted_model: Mapped[int | None]
    """The newest deleted versions of agents and models; their numbers are not reused."""
    champions: Mapped[dict[str, Champion]] = relationship(
        collection_class=attribute_keyed_dict("role"),
        cascade="all, delete-orphan",
        passive_deletes=True,
        lazy="selectin",
        order_by=Champion.role,
    )
    """Champions by role."""

    def champion(self, role: str) -> int | None:
        """Version of the agent that serves decisions in a role; None if a heuristic serves them."""
        result = self.champions.get(role)
        return None if result is None else result.version


# Caps: limits of what a tenant's runs may cost and take.


class TenantCaps(Base):
    """A tenant's caps for all its runs of a month (schema in `app.kinds.contract.caps`)."""

    __tablename__ = "tenant_caps"

    tenant: Mapped[str] = mapped_column(String(63), primary_key=True)
    caps: Mapped[dict[str, Any]]


class MonthlySpending(Base):
    """Cost (currency of the settings) and seconds of iterations of a workload's runs that ended in a month, counted
    against caps; rows stay when runs or workloads are deleted."""

    __tablename__ = "monthly_spendings"

    tenant: Mapped[str] = mapped_column(String(63), primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)
    """`YYYY-MM`, UTC."""
    workload_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    cost: Mapped[float] = mapped_column(Double)
    seconds: Mapped[float] = mapped_column(Double)


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
    """Whether it has ever been a champion."""


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


# Promotions: history of the champions of each role.


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
    """Origin: request, training or drift."""
    figures: Mapped[dict[str, Any] | None]


# Executions: samples of past runs of a workload.


class Execution(IdMixin, TenantMixin, CreatedMixin, Base):
    """One execution of a workload; `data` is encoded by the sample codec of the workload's kind."""

    __tablename__ = "executions"
    __table_args__ = (
        UniqueConstraint("workload_id", "name"),
        Index("ix_executions_workload_id_created_at_id", "workload_id", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(255))
    """The client's name of the execution, unique per workload."""
    digest: Mapped[str] = mapped_column(String(64))
    iterations: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    summary: Mapped[dict[str, Any] | None]
    """Summary of `data` for lists, made by its kind; NULL: stored by a release without summaries, and not listed since.
    """
    source: Mapped[str] = mapped_column(String(16), default="upload")
    """Origin: 'upload' or 'run'."""


# Exogenous rows: forecasts of external quantities, with their time of issue.


class ExogenousRow(TenantMixin, Base):
    """Mean, low and high of an exogenous series at one time, as known at `issued_at`."""

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


# Iterations: a run's reports and the decisions that answered them.


class Iteration(Base):
    """One reported iteration of a run; `packed` holds the report and the decision."""

    __tablename__ = "iterations"

    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT)
    digest: Mapped[str] = mapped_column(String(64))
    packed: Mapped[bytes] = mapped_column(LargeBinary)
    reported_at: Mapped[datetime] = mapped_column(default=utc_now)

    @classmethod
    def of(cls, run: str, iteration: int, report: Any, decision: Any, **values: Any) -> Iteration:
        """A row made of a report and a decision, both JSON values; ``values`` are further columns."""
        pack = pack_iteration(run, msgspec.json.encode(report), msgspec.json.encode(decision))
        return cls(run_id=run, iteration=iteration, packed=pack, **values)

    @property
    def size(self) -> int:
        """Bytes of report and decision as uncompressed JSON."""
        return unpacked_size(self.packed)

    @property
    def report(self) -> dict[str, Any]:
        """The report as JSON values, decompressed at each access; raises BrokenPack if the bytes are damaged."""
        return self._unpack_member(0)

    @property
    def decision(self) -> dict[str, Any]:
        """The decision for the report as JSON values, decompressed at each access; raises BrokenPack if damaged."""
        return self._unpack_member(1)

    def _unpack_member(self, which: int) -> dict[str, Any]:
        decision: dict[str, Any] = msgspec.json.decode(unpack_iteration(self.run_id, self.packed)[which])
        return decision


# Jobs: work for the workers. This table is authoritative; the broker only wakes workers up.


class Job(IdMixin, TenantMixin, CreatedMixin, Base):
    """A job. Its lease is held by (`owner`, `fence`) until `lease_expires_at`; each new lease increments the fence
    token, and every write of a worker names the fence token of its lease.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_tenant_created_at_id", "tenant", "created_at", "id"),
        Index("ix_jobs_state_lease_expires_at", "state", "lease_expires_at"),
    )

    type: Mapped[str] = mapped_column(String(16))
    """Type: 'fit', 'train', 'trial' or 'evaluate'."""
    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"), index=True)
    request: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    """Queued jobs of a tenant start in descending order of priority."""
    state: Mapped[str] = mapped_column(String(16), default="queued")
    """queued, running, waiting (for other jobs or a time; without a lease), succeeded, failed or cancelled."""
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
    """When it was last sent to the broker."""
    not_before: Mapped[datetime | None]
    """When a job that waits for a time resumes."""
    traceparent: Mapped[str | None] = mapped_column(String(55))
    """Span of the request that created it (W3C Trace Context), the parent of the worker's span."""
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


# Job events: log of a job, in order.


class JobEvent(TenantMixin, CreatedMixin, Base):
    """One event of a job; `sequence` counts from 1."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    data: Mapped[dict[str, Any]]


# Trials: competing learners of one training, each with a job of its own.


class Trial(TenantMixin, CreatedMixin, Base):
    """One trial of a training; its job's row holds lease, state and the learner's checkpoint."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    parent_id: Mapped[str] = mapped_column(Identifier, ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    """Id of the training's job."""
    number: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int]
    until: Mapped[float]
    """Share of its budget at which it pauses to be compared."""
    rungs: Mapped[int] = mapped_column(default=0)
    """Number of comparisons that it has reached."""
    share: Mapped[float] = mapped_column(default=0.0)
    """Share of its budget that it has used."""
    score: Mapped[float | None]
    """Mean return on the validation episodes of its best policy at a comparison; NULL before the first."""
    ended: Mapped[str | None] = mapped_column(String(1024))
    """Why it was stopped early; NULL while it continues, and if it used its whole budget."""
    report: Mapped[dict[str, Any] | None]
    artifact: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """The best policy; deleted when the training has ended."""


# Evaluations: results of the evaluation protocol.


class Evaluation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One evaluation; `page` is its HTML report, compressed by zlib."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index("ix_evaluations_workload_id_created_at_id", "workload_id", "created_at", "id"),
        Index("ix_evaluations_tenant_created_at_id", "tenant", "created_at", "id"),
    )

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    spec_version: Mapped[int]
    model_version: Mapped[int]
    request: Mapped[dict[str, Any]]
    """The request, with agents and model resolved to versions."""
    verdicts: Mapped[list[Any]]
    """Verdict per agent: its version, its class, and why the class is no higher."""
    report: Mapped[dict[str, Any]] = mapped_column(deferred=True)
    page: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


# Adaptations: responses to a detected drift, step by step.


class Adaptation(IdMixin, TenantMixin, CreatedMixin, Base):
    """One response to a drift, step by step; a workload has at most one in progress."""

    __tablename__ = "adaptations"
    __table_args__ = (UniqueConstraint("workload_id", "going_on"),)

    workload_id: Mapped[str] = mapped_column(Identifier, ForeignKey("workloads.id", ondelete="CASCADE"))
    going_on: Mapped[bool | None]
    """True while in progress, NULL afterwards, so that the unique constraint allows one in progress."""
    state: Mapped[str] = mapped_column(String(16))
    """fitting, training, shadow, watched; finally kept, rolled_back, rejected, superseded or failed."""
    request: Mapped[dict[str, Any]]
    """The workload's drift settings when it began."""
    run_id: Mapped[str] = mapped_column(Identifier)
    """Id of the run whose drift notice started it."""
    notice: Mapped[dict[str, Any]]
    job_id: Mapped[str | None] = mapped_column(Identifier)
    """Id of the job that it waits for; NULL: none."""
    model_version: Mapped[int | None]
    agent_version: Mapped[int | None]
    """Version of the new agent, NULL before its training has ended."""
    predecessor: Mapped[int | None]
    """Version of the champion when it began; NULL: a heuristic."""
    marks: Mapped[dict[str, Any]]
    """Number of the next iteration of each run, by run id, when the shadow phase began."""
    steps: Mapped[list[Any]]
    """Log of its steps: time, action, reason and figures."""
    finished_at: Mapped[datetime | None]


# API keys and tokens of runs; only hashes of secrets are stored.


class Key(TenantMixin, CreatedMixin, Base):
    """An API key. Rows are never deleted: once a key was created, the service requires keys for ever."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(120))
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its secret of 256 random bits, for which a slow hash is unnecessary."""
    scopes: Mapped[list[Any]]
    created_by: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)  # counted twice a second


class RunToken(TenantMixin, CreatedMixin, Base):
    """A token of one run; invalid once the key that requested it is revoked."""

    __tablename__ = "run_tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    run_id: Mapped[str] = mapped_column(Identifier, ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(String(64))
    key_id: Mapped[str | None] = mapped_column(String(16))
    """Id of the key that requested it; NULL for another credential."""


# The audit: who changed what, when.


class AuditEntry(IdMixin, TenantMixin, CreatedMixin, Base):
    """One change; written in the transaction that makes the change."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_tenant_created_at_id", "tenant", "created_at", "id"),)

    actor: Mapped[str] = mapped_column(String(255))
    """`key:<id>`, `subject:<issuer's name>`, `run:<id>`, `anybody` (no keys required), or a process: `command`."""
    action: Mapped[str] = mapped_column(String(64))
    target: Mapped[str] = mapped_column(String(255))
    address: Mapped[str | None] = mapped_column(String(64))
    """Address of the client, as seen by the server or a trusted proxy."""
    detail: Mapped[dict[str, Any] | None]


# Idempotency keys: stored responses of creating requests, returned when the request is repeated.


class IdempotencyKey(CreatedMixin, Base):
    """A client's idempotency key with the stored response; `status` is NULL while the request is in flight."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("ix_idempotency_keys_created_at", "created_at"),)

    tenant: Mapped[str] = mapped_column(String(63), primary_key=True, default=DEFAULT_TENANT)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    claim: Mapped[str] = mapped_column(String(32))
    """Random token of the request that holds the key."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of method, path, query and body."""
    status: Mapped[int | None]
    body: Mapped[dict[str, Any] | None]
    headers: Mapped[dict[str, Any] | None]


# Webhooks: messages about events of runs and jobs, to each receiver once.


class WebhookDelivery(TenantMixin, CreatedMixin, Base):
    """A message to one receiver about one event of a run or job, and its delivery."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index("ix_webhook_deliveries_receiver_due_at", "receiver", "due_at"),)

    receiver: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Digest of the receiver's URL, which may be a secret."""
    subject: Mapped[str] = mapped_column(Identifier, primary_key=True)
    """Id of the run or job, which may have been deleted."""
    event: Mapped[str] = mapped_column(String(16), primary_key=True)
    """run.at_risk, run.stale, run.missed, run.cap_reached, run.failed or job.failed."""
    message: Mapped[dict[str, Any]]
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime | None]
    """When it is sent next; NULL once it is delivered or given up."""
    delivered_at: Mapped[datetime | None]
    problem: Mapped[str | None] = mapped_column(String(255))
    """Why the last attempt failed."""


# Leases: tasks that only one process at a time may do.


class Lease(TenantMixin, Base):
    """The process that does a task, and when its lease expires by the database's clock."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    owner: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime]


# Workers: heartbeats of worker processes.


class Worker(TenantMixin, Base):
    """A worker process: when it started and when it was last seen."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime] = mapped_column(index=True)
