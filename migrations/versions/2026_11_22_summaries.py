"""summaries of executions; those that are there already get theirs when they are first listed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = "2026_11_22_summaries"
down_revision = "2026_11_21_shadows"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("executions", sa.Column("summary", JSON, nullable=True))


def downgrade() -> None:
    op.drop_column("executions", "summary")
