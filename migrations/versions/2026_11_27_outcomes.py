"""runs have an outcome with a reason; those that ended before can't be judged any more, and have completed or failed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_27_outcomes"
down_revision = "2026_11_26_revoked"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("outcome", sa.String(length=16), nullable=False, server_default="on_track"))
    op.add_column("runs", sa.Column("outcome_reason", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("expected_seconds", sa.Double(), nullable=True))
    runs = sa.table("runs", sa.column("state"), sa.column("outcome"), sa.column("outcome_reason"))
    op.execute(runs.update().where(runs.c.state == "failed").values(outcome="failed"))
    before = "it ended before outcomes were recorded"
    finished = runs.update().where(runs.c.state == "finished")
    op.execute(finished.values(outcome="completed", outcome_reason=before))
    op.create_index("ix_runs_outcome_tenant_created_at_id", "runs", ["outcome", "tenant", "created_at", "id"])


def downgrade() -> None:
    runs = sa.table("runs", sa.column("state"))
    op.execute(runs.update().where(runs.c.state == "cancelled").values(state="failed"))
    op.drop_index("ix_runs_outcome_tenant_created_at_id", "runs")
    for column in ("expected_seconds", "outcome_reason", "outcome"):
        op.drop_column("runs", column)
