"""evaluations"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

revision = "2026_11_21_evaluations"
down_revision = "2026_11_21"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
            ["workload_id"], ["workloads.id"], name=op.f("fk_evaluations_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
    )
    op.create_index("ix_evaluations_tenant", "evaluations", ["tenant"])
    op.create_index("ix_evaluations_tenant_created_at_id", "evaluations", ["tenant", "created_at", "id"])
    op.create_index("ix_evaluations_workload_id_created_at_id", "evaluations", ["workload_id", "created_at", "id"])


def downgrade() -> None:
    op.drop_table("evaluations")
