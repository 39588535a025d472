"""runs have an outcome with a reason; those that ended before can't be judged any more, and have completed or failed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_27_outcomes"
down_revision = "2026_11_26_revoked"
branch_labels = None
depends_on = None

BEFORE = "it ended before outcomes were recorded"
ENDED = sa.text("finished_at IS NOT NULL")
JUDGED = sa.text("outcome IN ('met', 'missed', 'failed')")


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    # PostgreSQL writes no row to add a column with a default: there the many runs that have ended get theirs in this
    # way, and only the others are written. SQLite can't change a default afterwards.
    outcome, reason = ("completed", BEFORE) if on_postgresql else ("on_track", None)
    op.add_column("runs", sa.Column("outcome", sa.String(length=16), nullable=False, server_default=outcome))
    op.add_column("runs", sa.Column("outcome_reason", sa.String(), nullable=True, server_default=reason))
    op.add_column("runs", sa.Column("expected_seconds", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("quiet", sa.Boolean(), nullable=False, server_default=sa.false()))
    runs = sa.table("runs", sa.column("state"), sa.column("outcome"), sa.column("outcome_reason"))

    def write(state: str, outcome: str, reason: str | None) -> None:
        op.execute(runs.update().where(runs.c.state == state).values(outcome=outcome, outcome_reason=reason))

    write("failed", "failed", None)
    if on_postgresql:
        write("running", "on_track", None)
        op.alter_column("runs", "outcome", server_default="on_track")
        op.alter_column("runs", "outcome_reason", server_default=None)
    else:
        write("finished", "completed", BEFORE)
    op.create_index("ix_runs_outcome_tenant_created_at_id", "runs", ["outcome", "tenant", "created_at", "id"])
    op.create_index("ix_runs_finished_at", "runs", ["finished_at"], sqlite_where=ENDED, postgresql_where=ENDED)
    columns = ["workload_id", "finished_at", "id"]
    op.create_index("ix_runs_judged", "runs", columns, sqlite_where=JUDGED, postgresql_where=JUDGED)


def downgrade() -> None:
    runs = sa.table("runs", sa.column("state"))
    op.execute(runs.update().where(runs.c.state == "cancelled").values(state="failed"))
    op.drop_index("ix_runs_judged", "runs")
    op.drop_index("ix_runs_finished_at", "runs")
    op.drop_index("ix_runs_outcome_tenant_created_at_id", "runs")
    for column in ("quiet", "expected_seconds", "outcome_reason", "outcome"):
        op.drop_column("runs", column)
