"""Nouns whose commands follow from what is said of them, and no more."""

from __future__ import annotations

import typer

from app.cli.nouns.catalogue import JOB, MODEL, SERIES, WORKLOAD
from app.cli.nouns.commands import group


def register(cli: typer.Typer) -> None:
    """Add their groups to the ``steward`` command."""
    for noun in (WORKLOAD, SERIES, MODEL, JOB):
        cli.add_typer(group(noun))
