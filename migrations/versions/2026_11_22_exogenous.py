"""exogenous rows"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

TIME = sa.DateTime(timezone=True)

revision = "2026_11_22_exogenous"
down_revision = "2026_11_22_champions"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
            ["workload_id"], ["workloads.id"], name=op.f("fk_exogenous_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workload_id", "series", "time", "issued_at", name=op.f("pk_exogenous")),
    )
    op.create_index("ix_exogenous_tenant", "exogenous", ["tenant"])


def downgrade() -> None:
    op.drop_table("exogenous")
