"""``steward audit``: who changed what, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from app.audit.schemas import AuditRead
from app.cli.nouns.contract import Column
from app.cli.remote.nouns.tables import table

COLUMNS = (
    Column("age", "at", "age", whole=True),
    Column("tenant", "tenant"),
    Column("by", "actor"),
    Column("action", "action"),
    Column("target", "target"),
)


def show(entries: Sequence[AuditRead], most: int) -> None:
    """Print a line for each; of so many there may be more."""
    console = Console()
    console.print(table(COLUMNS, [entry.model_dump(mode="json") for entry in entries]) if entries else "none")
    if len(entries) == most:
        console.print(f"the first {most:,}; --limit says of how many", highlight=False)
