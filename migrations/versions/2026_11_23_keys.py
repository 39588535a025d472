"""API keys, tokens of runs, and the audit"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

revision = "2026_11_23_keys"
down_revision = "2026_11_23_packed"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    op.create_index("ix_keys_tenant", "keys", ["tenant"])
    op.create_table(
        "run_tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=True),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_tokens_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_tokens")),
    )
    op.create_index("ix_run_tokens_run_id", "run_tokens", ["run_id"])
    op.create_index("ix_run_tokens_tenant", "run_tokens", ["tenant"])
    op.create_table(
        "audit",
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("target", sa.String(length=255), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("detail", JSON, nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_tenant", "audit", ["tenant"])
    op.create_index("ix_audit_tenant_created_at_id", "audit", ["tenant", "created_at", "id"])


def downgrade() -> None:
    op.drop_table("audit")
    op.drop_table("run_tokens")
    op.drop_table("keys")
