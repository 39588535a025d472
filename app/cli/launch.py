"""``steward run -- COMMAND``: a command of one's own under Steward's decisions; the client's launcher does it.

Beside it stands what there is of runs, by whomever they were started.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from app.cli.commands import Defaulting
from app.cli.nouns.catalogue import RUN
from app.cli.nouns.commands import group


class Runs(Defaulting):
    """``steward run -- python train.py`` is short for ``steward run launch -- python train.py``."""

    default = "launch"


class PassedOn(TyperCommand):
    """A command that reads its arguments itself, ``--`` and ``--help`` among them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all as it is."""
        ctx.args = list(args)
        return ctx.args


def register(cli: typer.Typer) -> None:
    """Add runs to the ``steward`` command: what is none of their verbs is launched."""
    runs = group(RUN, Runs)
    cli.add_typer(runs)
    runs.command(cls=PassedOn)(launch)


def launch(context: typer.Context) -> None:
    """Run a command under Steward: steward run [options] -- COMMAND.

    Exit status: the command's own; if it was never started, 1 refused, 2 usage error, 3 service unreachable, 127.
    """
    from steward_client.launcher.arguments import parser

    if context.args and context.args[0] in context.help_option_names:  # told at once: what launches takes a second
        parser("steward run").print_help()
        return
    from steward_client.launcher.main import main

    raise typer.Exit(main(context.args, "steward run"))
