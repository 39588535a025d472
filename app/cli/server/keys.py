"""`steward key list`: table of keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from app.cli.operations import Column
from app.cli.remote.perform import table
from app.keys.service import KeyRead

COLUMNS = [Column(name, name) for name in ("id", "tenant", "scopes", "state", "name")]


def show(keys: Sequence[KeyRead]) -> None:
    """Print keys as a table."""
    Console().print(
        "none" if not keys else table(COLUMNS, [{**key.model_dump(), "state": _state(key)} for key in keys])
    )


def _state(key: KeyRead) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    return f"until {key.expires_at:%Y-%m-%d %H:%M}" if key.expires_at else "valid"
