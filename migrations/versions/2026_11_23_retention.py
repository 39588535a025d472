"""how long a workload's things are kept, which versions are gone for good, from where a run's iterations are kept"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = "2026_11_23_retention"
down_revision = "2026_11_23_drift"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workloads", sa.Column("retention", JSON, nullable=True))
    op.add_column("workloads", sa.Column("deleted_agent", sa.Integer(), nullable=True))
    op.add_column("workloads", sa.Column("deleted_model", sa.Integer(), nullable=True))
    op.add_column("runs", sa.Column("kept_from", sa.Integer(), nullable=True))
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_index("ix_leases_tenant", "leases", ["tenant"])


def downgrade() -> None:
    op.drop_table("leases")
    op.drop_column("runs", "kept_from")
    op.drop_column("workloads", "deleted_model")
    op.drop_column("workloads", "deleted_agent")
    op.drop_column("workloads", "retention")
