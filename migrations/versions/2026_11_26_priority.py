"""which of a tenant's jobs begins first"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_26_priority"
down_revision = "2026_11_23_traceparent"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("jobs", "priority")
