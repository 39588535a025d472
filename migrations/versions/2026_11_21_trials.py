"""trials"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

revision = "2026_11_21_trials"
down_revision = "2026_11_21_evaluations"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_trials_job_id_jobs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parent_id"], ["jobs.id"], name=op.f("fk_trials_parent_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_trials")),
    )
    op.create_index("ix_trials_parent_id", "trials", ["parent_id"])
    op.create_index("ix_trials_tenant", "trials", ["tenant"])


def downgrade() -> None:
    op.drop_table("trials")
