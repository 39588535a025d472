"""jobs that go on later: until when nobody takes them up"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_not_before"
down_revision = "2026_11_22_exogenous"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("not_before", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Jobs that wait for a time are queued: they go on sooner, and nothing else would wake them up."""
    op.execute("UPDATE jobs SET state = 'queued' WHERE state = 'waiting' AND not_before IS NOT NULL")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("not_before")
