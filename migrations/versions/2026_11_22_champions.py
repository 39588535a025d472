"""champions by role: those that are there already, and their promotions, are of the default one"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_champions"
down_revision = "2026_11_22_run_start"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "champions",
        sa.Column("workload_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=63), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(length=63), nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_champions_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workload_id", "role", name=op.f("pk_champions")),
    )
    op.create_index("ix_champions_tenant", "champions", ["tenant"])
    op.execute(
        "INSERT INTO champions (workload_id, role, version, tenant) "
        "SELECT id, 'default', champion, tenant FROM workloads WHERE champion IS NOT NULL"
    )
    with op.batch_alter_table("workloads") as workloads:
        workloads.drop_column("champion")
    with op.batch_alter_table("promotions") as promotions:
        promotions.add_column(sa.Column("role", sa.String(length=63), nullable=False, server_default="default"))
    with op.batch_alter_table("promotions") as promotions:
        promotions.alter_column("role", server_default=None)


def downgrade() -> None:
    """What there is of other roles than the default one is lost."""
    op.add_column("workloads", sa.Column("champion", sa.Integer(), nullable=True))
    op.execute(
        "UPDATE workloads SET champion = (SELECT version FROM champions "
        "WHERE champions.workload_id = workloads.id AND champions.role = 'default')"
    )
    op.drop_table("champions")
    op.execute("DELETE FROM promotions WHERE role <> 'default'")
    with op.batch_alter_table("promotions") as promotions:
        promotions.drop_column("role")
