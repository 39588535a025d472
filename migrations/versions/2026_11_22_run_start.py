"""what a run was started with, as its kind has it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = "2026_11_22_run_start"
down_revision = "2026_11_22_summaries"
branch_labels = None
depends_on = None

RUNS = sa.table("runs", sa.column("id", sa.String), sa.column("targets", JSON), sa.column("start", JSON))


def upgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("start", JSON, nullable=False, server_default="{}"))
    connection = op.get_bind()
    for run, targets in connection.execute(sa.select(RUNS.c.id, RUNS.c.targets)).all():
        if targets:
            connection.execute(RUNS.update().where(RUNS.c.id == run).values(start={"targets": targets}))
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("targets")
        runs.alter_column("start", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("targets", JSON, nullable=True))
    connection = op.get_bind()
    for run, start in connection.execute(sa.select(RUNS.c.id, RUNS.c.start)).all():
        connection.execute(RUNS.update().where(RUNS.c.id == run).values(targets=(start or {}).get("targets", {})))
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("start")
