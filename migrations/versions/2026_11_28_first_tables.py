"""The first tables of the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

revision = "2026_11_28"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("target", sa.String(length=255), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("detail", JSON, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_tenant", "audit", ["tenant"])
    op.create_index("ix_audit_tenant_created_at_id", "audit", ["tenant", "created_at", "id"])

    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("claim", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", JSON, nullable=True),
        sa.Column("headers", JSON, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])

    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_index("ix_keys_revoked_at", "keys", ["revoked_at"])
    op.create_index("ix_keys_tenant", "keys", ["tenant"])

    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_index("ix_leases_tenant", "leases", ["tenant"])

    op.create_table(
        "tenant_caps",
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("caps", JSON, nullable=False),
        sa.PrimaryKeyConstraint("tenant", name="pk_tenant_caps"),
    )
    op.create_table(
        "monthly_spendings",
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "month", "workload_id", name="pk_monthly_spendings"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("receiver", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("message", JSON, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("delivered_at", TIME, nullable=True),
        sa.Column("problem", sa.String(length=255), nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("receiver", "subject", "event", name="pk_webhook_deliveries"),
    )
    op.create_index("ix_webhook_deliveries_receiver_due_at", "webhook_deliveries", ["receiver", "due_at"])
    op.create_index("ix_webhook_deliveries_tenant", "webhook_deliveries", ["tenant"])

    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )
    op.create_index("ix_workers_seen_at", "workers", ["seen_at"])
    op.create_index("ix_workers_tenant", "workers", ["tenant"])

    op.create_table(
        "workloads",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=63), nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("drift", JSON, nullable=True),
        sa.Column("retention", JSON, nullable=True),
        sa.Column("prior", JSON, nullable=True),
        sa.Column("deleted_agent", sa.Integer(), nullable=True),
        sa.Column("deleted_model", sa.Integer(), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workloads"),
        sa.UniqueConstraint("tenant", "name", name="uq_workloads_tenant_name"),
    )
    op.create_index("ix_workloads_tenant", "workloads", ["tenant"])

    op.create_table(
        "adaptations",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("going_on", sa.Boolean(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("notice", JSON, nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("model_version", sa.Integer(), nullable=True),
        sa.Column("agent_version", sa.Integer(), nullable=True),
        sa.Column("predecessor", sa.Integer(), nullable=True),
        sa.Column("marks", JSON, nullable=False),
        sa.Column("steps", JSON, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_adaptations_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_adaptations"),
        sa.UniqueConstraint("workload_id", "going_on", name="uq_adaptations_workload_id_going_on"),
    )
    op.create_index("ix_adaptations_tenant", "adaptations", ["tenant"])

    op.create_table(
        "agents",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.Column("algorithm", sa.String(length=63), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("artifact", sa.LargeBinary(), nullable=False),
        sa.Column("promoted", sa.Boolean(), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_agents_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
        sa.UniqueConstraint("workload_id", "version", name="uq_agents_workload_id_version"),
    )
    op.create_index("ix_agents_tenant", "agents", ["tenant"])

    op.create_table(
        "champions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=63), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_champions_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workload_id", "role", name="pk_champions"),
    )
    op.create_index("ix_champions_tenant", "champions", ["tenant"])

    op.create_table(
        "domain_models",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("table", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_domain_models_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_domain_models"),
        sa.UniqueConstraint("workload_id", "version", name="uq_domain_models_workload_id_version"),
    )
    op.create_index("ix_domain_models_tenant", "domain_models", ["tenant"])

    op.create_table(
        "evaluations",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("verdicts", JSON, nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("page", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_evaluations_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
    )
    op.create_index("ix_evaluations_tenant", "evaluations", ["tenant"])
    op.create_index("ix_evaluations_tenant_created_at_id", "evaluations", ["tenant", "created_at", "id"])
    op.create_index("ix_evaluations_workload_id_created_at_id", "evaluations", ["workload_id", "created_at", "id"])

    op.create_table(
        "executions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("iterations", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("summary", JSON, nullable=True),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_executions_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_executions"),
        sa.UniqueConstraint("workload_id", "name", name="uq_executions_workload_id_name"),
    )
    op.create_index("ix_executions_tenant", "executions", ["tenant"])
    op.create_index("ix_executions_workload_id_created_at_id", "executions", ["workload_id", "created_at", "id"])

    op.create_table(
        "exogenous",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("series", sa.String(length=63), nullable=False),
        sa.Column("time", TIME, nullable=False),
        sa.Column("issued_at", TIME, nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_exogenous_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workload_id", "series", "time", "issued_at", name="pk_exogenous"),
    )
    op.create_index("ix_exogenous_tenant", "exogenous", ["tenant"])

    op.create_table(
        "jobs",
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("eta_seconds", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", JSON, nullable=True),
        sa.Column("result", JSON, nullable=True),
        sa.Column("checkpoint", sa.LargeBinary(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_expires_at", TIME, nullable=True),
        sa.Column("enqueued_at", TIME, nullable=True),
        sa.Column("not_before", TIME, nullable=True),
        sa.Column("traceparent", sa.String(length=55), nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_jobs_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_state_lease_expires_at", "jobs", ["state", "lease_expires_at"])
    op.create_index("ix_jobs_tenant", "jobs", ["tenant"])
    op.create_index("ix_jobs_tenant_created_at_id", "jobs", ["tenant", "created_at", "id"])
    op.create_index("ix_jobs_workload_id", "jobs", ["workload_id"])

    op.create_table(
        "promotions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=63), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=True),
        sa.Column("previous", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=1024), nullable=False),
        sa.Column("made_by", sa.String(length=16), nullable=False),
        sa.Column("figures", JSON, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_promotions_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_promotions"),
    )
    op.create_index("ix_promotions_tenant", "promotions", ["tenant"])
    op.create_index("ix_promotions_workload_id_created_at", "promotions", ["workload_id", "created_at"])

    op.create_table(
        "runs",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=True),
        sa.Column("shadow_version", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=16), server_default="on_track", nullable=False),
        sa.Column("outcome_reason", sa.String(), nullable=True),
        sa.Column("expected_seconds", sa.Double(), nullable=True),
        sa.Column("quiet", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("start", JSON, nullable=False),
        sa.Column("state_vector", JSON, nullable=False),
        sa.Column("next_iteration", sa.Integer(), nullable=False),
        sa.Column("decision", JSON, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("kept_from", sa.Integer(), nullable=True),
        sa.Column("drift", JSON, nullable=True),
        sa.Column("drifts", sa.Integer(), nullable=False),
        sa.Column("changes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("output", sa.LargeBinary(), nullable=True),
        sa.Column("savings", JSON, nullable=True),
        sa.Column("cost", sa.Double(), server_default="0", nullable=False),
        sa.Column("seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("next_cost", sa.Double(), server_default="0", nullable=False),
        sa.Column("next_seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name="fk_runs_workload_id_workloads", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        postgresql_with={"fillfactor": 50},  # pages keep room for a row's next version, which each report writes
    )
    op.create_index(
        "ix_runs_drifted",
        "runs",
        ["workload_id", "created_at", "id"],
        sqlite_where=sa.text("drifts > 0"),
        postgresql_where=sa.text("drifts > 0"),
    )
    op.create_index(
        "ix_runs_finished_at",
        "runs",
        ["finished_at"],
        sqlite_where=sa.text("finished_at IS NOT NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        "ix_runs_judged",
        "runs",
        ["workload_id", "finished_at", "id"],
        sqlite_where=sa.text("outcome IN ('met', 'missed', 'failed')"),
        postgresql_where=sa.text("outcome IN ('met', 'missed', 'failed')"),
    )
    op.create_index(
        "ix_runs_saved",
        "runs",
        ["workload_id", "finished_at"],
        sqlite_where=sa.text("savings IS NOT NULL"),
        postgresql_where=sa.text("savings IS NOT NULL"),
    )
    op.create_index("ix_runs_outcome_tenant_created_at_id", "runs", ["outcome", "tenant", "created_at", "id"])
    op.create_index("ix_runs_tenant", "runs", ["tenant"])
    op.create_index("ix_runs_tenant_created_at_id", "runs", ["tenant", "created_at", "id"])
    op.create_index("ix_runs_tenant_state_created_at_id", "runs", ["tenant", "state", "created_at", "id"])
    op.create_index("ix_runs_workload_id_created_at_id", "runs", ["workload_id", "created_at", "id"])
    op.create_index("ix_runs_workload_id_shadow_version", "runs", ["workload_id", "shadow_version"])

    op.create_table(
        "iterations",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("iteration", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.Column("reported_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_iterations_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "iteration", name="pk_iterations"),
    )
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_events_job_id_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "sequence", name="pk_job_events"),
    )
    op.create_index("ix_job_events_tenant", "job_events", ["tenant"])

    op.create_table(
        "run_tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_tokens_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_run_tokens"),
    )
    op.create_index("ix_run_tokens_run_id", "run_tokens", ["run_id"])
    op.create_index("ix_run_tokens_tenant", "run_tokens", ["tenant"])

    op.create_table(
        "trials",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("parent_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("algorithm", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.Column("rungs", sa.Integer(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("ended", sa.String(length=1024), nullable=True),
        sa.Column("report", JSON, nullable=True),
        sa.Column("artifact", sa.LargeBinary(), nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_trials_job_id_jobs", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parent_id"], ["jobs.id"], name="fk_trials_parent_id_jobs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name="pk_trials"),
    )
    op.create_index("ix_trials_parent_id", "trials", ["parent_id"])
    op.create_index("ix_trials_tenant", "trials", ["tenant"])
