"""``steward forecast`` on the command line; what it does is imported when it is asked for."""

from typing import Annotated

import typer

from app.cli.nouns.commands import Workload
from app.cli.options import SERVICE, Plot, Url


def register(cli: typer.Typer) -> None:
    """Add forecasts to the ``steward`` command."""

    @cli.command()
    def forecast(
        workload: Workload,
        model: Annotated[int | None, typer.Option(min=1, help="Version of the domain model. [default: newest]")] = None,
        plot: Plot = None,
        url: Url = SERVICE,
        json: Annotated[bool, typer.Option("--json", help="Print the response as JSON instead of a table.")] = False,
    ) -> None:
        """Print or draw a workload's forecasts.

        By series and horizon, with the model family used.

        Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized.
        """
        from app.cli.remote.forecast import Options, run

        raise typer.Exit(run(Options(url, workload, model, plot, json)))
