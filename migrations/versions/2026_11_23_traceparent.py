"""for which trace a job was asked for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_traceparent"
down_revision = "2026_11_23_runs_in_place"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("traceparent", sa.String(length=55), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "traceparent")
