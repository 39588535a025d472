"""Registration of ``steward pretrain``; the fit runs in a child process, and its module is never imported here."""

from pathlib import Path
from typing import Annotated

import typer


def register(cli: typer.Typer) -> None:
    """Add the command ``steward pretrain`` to ``cli``."""
    cli.command()(pretrain)


def pretrain(
    curves: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="CSV file with the columns application, curve, amount, seconds. Without it, a rule is tuned.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="File to write; default: population.json, or declared.json."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the tuning.")] = 1,
) -> None:
    """Fit the prior of new workloads, or tune the default rule.

    For kind iterative. A curve holds the seconds that the same work takes on several amounts of a resource, such as
    1, 2, 4 and 8 GPUs. Without a file of curves, the numbers of model_predictive where disturbances are declared are
    tuned on workloads that are drawn at random, for a minute or more. The file that is written replaces the one of the
    same name in the installed package.

    Exit status: 0 done, 2 usage error (the file has no such curves).
    """
    from app.cli.child import run_child

    written = str(out or ("population.json" if curves else "declared.json"))
    given = ["--seed", str(seed), *(["--", str(curves)] if curves else [])]
    raise typer.Exit(run_child("workers.kinds.iterative.pretrain", "--out", written, *given))
