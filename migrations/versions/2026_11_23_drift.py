"""what runs keep of the test for drifts, and how drifts are answered"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = "2026_11_23_drift"
down_revision = "2026_11_23_not_before"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("drift", JSON, nullable=True))
        runs.add_column(sa.Column("drifts", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("runs") as runs:
        runs.alter_column("drifts", server_default=None)
    op.add_column("workloads", sa.Column("drift", JSON, nullable=True))
    with op.batch_alter_table("promotions") as promotions:
        promotions.add_column(sa.Column("made_by", sa.String(length=16), nullable=False, server_default="request"))
        promotions.add_column(sa.Column("figures", JSON, nullable=True))
    with op.batch_alter_table("promotions") as promotions:
        promotions.alter_column("made_by", server_default=None)
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
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_adaptations_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adaptations")),
        sa.UniqueConstraint("workload_id", "going_on", name=op.f("uq_adaptations_workload_id_going_on")),
    )
    op.create_index("ix_adaptations_tenant", "adaptations", ["tenant"])


def downgrade() -> None:
    op.drop_table("adaptations")
    with op.batch_alter_table("promotions") as promotions:
        promotions.drop_column("figures")
        promotions.drop_column("made_by")
    op.drop_column("workloads", "drift")
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("drifts")
        runs.drop_column("drift")
