"""The `steward` command: modules with `register(cli: typer.Typer)`, one per group; other packages' commands follow.

Heavy modules are imported only when a command needs them, so that `steward --help` is fast.
"""

from __future__ import annotations

from importlib import import_module

import typer

from app.cli.commands import Commands
from app.cli.options import STATUSES

GROUPS = ("general", "serve", "verbs", "database", "demo", "keys", "doctor")

cli = typer.Typer(
    name="steward",
    cls=Commands,
    help="Steward: allocation as a service.",
    epilog=STATUSES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _group in GROUPS:
    import_module(f"app.cli.{_group}").register(cli)
