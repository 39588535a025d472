"""runs are updated in place: pages of PostgreSQL keep room for a row's next version, which each report writes"""

from __future__ import annotations

from alembic import op

revision = "2026_11_23_runs_in_place"
down_revision = "2026_11_23_keys"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of rows to come; no page is written anew, and nobody waits."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE runs SET (fillfactor = 50)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE runs RESET (fillfactor)")
