"""revoked keys are counted without reading all of them"""

from __future__ import annotations

from alembic import op

revision = "2026_11_26_revoked"
down_revision = "2026_11_26_priority"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_keys_revoked_at", "keys", ["revoked_at"])


def downgrade() -> None:
    op.drop_index("ix_keys_revoked_at", "keys")
