"""reports and decisions in one packed column; indices of runs that are listed by state, or have drifted"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.database.packing import unpacked

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
AT_ONCE = 2_000
DRIFTED = sa.text("drifts > 0")

revision = "2026_11_23_packed"
down_revision = "2026_11_23_retention"
branch_labels = None
depends_on = None

ITERATIONS = sa.table(
    "iterations",
    sa.column("run_id", sa.String),
    sa.column("iteration", sa.Integer),
    sa.column("report", JSON),
    sa.column("decision", JSON),
    sa.column("packed", sa.LargeBinary),
)


def upgrade() -> None:
    """What is there stays as it is: it is read either way."""
    op.add_column("iterations", sa.Column("packed", sa.LargeBinary(), nullable=True))
    op.drop_index("ix_iterations_tenant", "iterations")
    op.create_index("ix_runs_tenant_state_created_at_id", "runs", ["tenant", "state", "created_at", "id"])
    columns = ["workload_id", "created_at", "id"]
    op.create_index("ix_runs_drifted", "runs", columns, sqlite_where=DRIFTED, postgresql_where=DRIFTED)


def downgrade() -> None:
    op.drop_index("ix_runs_drifted", "runs")
    op.drop_index("ix_runs_tenant_state_created_at_id", "runs")
    connection, each = op.get_bind(), ITERATIONS.c
    packed = sa.select(each.run_id, each.iteration, each.packed).where(each.packed.is_not(None)).limit(AT_ONCE)
    here = (each.run_id == sa.bindparam("run"), each.iteration == sa.bindparam("number"))
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in ("report", "decision", "packed")}
    while rows := connection.execute(packed).all():
        connection.execute(sa.update(ITERATIONS).where(*here).values(values), [_plain(row) for row in rows])
    op.create_index("ix_iterations_tenant", "iterations", ["tenant"])
    op.drop_column("iterations", "packed")


def _plain(row: Any) -> dict[str, object]:
    report, decision = unpacked(row.run_id, row.packed)
    plain = {"new_report": json.loads(report), "new_decision": json.loads(decision), "new_packed": None}
    return {"run": row.run_id, "number": row.iteration, **plain}
