"""first tables"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

revision = "2026_11_21"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])

    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_index("ix_workers_seen_at", "workers", ["seen_at"])
    op.create_index("ix_workers_tenant", "workers", ["tenant"])

    op.create_table(
        "workloads",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=63), nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("champion", sa.Integer(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workloads")),
        sa.UniqueConstraint("tenant", "name", name=op.f("uq_workloads_tenant_name")),
    )
    op.create_index("ix_workloads_tenant", "workloads", ["tenant"])

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
            ["workload_id"], ["workloads.id"], name=op.f("fk_agents_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("workload_id", "version", name=op.f("uq_agents_workload_id_version")),
    )
    op.create_index("ix_agents_tenant", "agents", ["tenant"])

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
            ["workload_id"], ["workloads.id"], name=op.f("fk_domain_models_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_domain_models")),
        sa.UniqueConstraint("workload_id", "version", name=op.f("uq_domain_models_workload_id_version")),
    )
    op.create_index("ix_domain_models_tenant", "domain_models", ["tenant"])

    op.create_table(
        "executions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("iterations", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_executions_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_executions")),
        sa.UniqueConstraint("workload_id", "name", name=op.f("uq_executions_workload_id_name")),
    )
    op.create_index("ix_executions_tenant", "executions", ["tenant"])
    op.create_index("ix_executions_workload_id_created_at_id", "executions", ["workload_id", "created_at", "id"])

    op.create_table(
        "jobs",
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("request", JSON, nullable=False),
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
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_jobs_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_state_lease_expires_at", "jobs", ["state", "lease_expires_at"])
    op.create_index("ix_jobs_tenant", "jobs", ["tenant"])
    op.create_index("ix_jobs_tenant_created_at_id", "jobs", ["tenant", "created_at", "id"])
    op.create_index("ix_jobs_workload_id", "jobs", ["workload_id"])

    op.create_table(
        "promotions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=True),
        sa.Column("previous", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=1024), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_promotions_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotions")),
    )
    op.create_index("ix_promotions_tenant", "promotions", ["tenant"])
    op.create_index("ix_promotions_workload_id_created_at", "promotions", ["workload_id", "created_at"])

    op.create_table(
        "runs",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("spec_version", sa.Integer(), nullable=False),
        sa.Column("agent_version", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("targets", JSON, nullable=True),
        sa.Column("state_vector", JSON, nullable=False),
        sa.Column("next_iteration", sa.Integer(), nullable=False),
        sa.Column("decision", JSON, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_runs_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_tenant", "runs", ["tenant"])
    op.create_index("ix_runs_tenant_created_at_id", "runs", ["tenant", "created_at", "id"])
    op.create_index("ix_runs_workload_id_created_at_id", "runs", ["workload_id", "created_at", "id"])

    op.create_table(
        "iterations",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("iteration", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("decision", JSON, nullable=False),
        sa.Column("reported_at", TIME, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_iterations_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "iteration", name=op.f("pk_iterations")),
    )
    op.create_index("ix_iterations_tenant", "iterations", ["tenant"])

    op.create_table(
        "job_events",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "sequence", name=op.f("pk_job_events")),
    )
    op.create_index("ix_job_events_tenant", "job_events", ["tenant"])


def downgrade() -> None:
    op.drop_table("job_events")
    op.drop_table("iterations")
    op.drop_table("runs")
    op.drop_table("promotions")
    op.drop_table("jobs")
    op.drop_table("executions")
    op.drop_table("domain_models")
    op.drop_table("agents")
    op.drop_table("workloads")
    op.drop_table("workers")
    op.drop_table("idempotency_keys")
