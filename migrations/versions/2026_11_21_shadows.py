"""shadows of runs"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_shadows"
down_revision = "2026_11_21_trials"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("shadow_version", sa.Integer(), nullable=True))
    op.create_index("ix_runs_workload_id_shadow_version", "runs", ["workload_id", "shadow_version"])


def downgrade() -> None:
    op.drop_index("ix_runs_workload_id_shadow_version", "runs")
    op.drop_column("runs", "shadow_version")
