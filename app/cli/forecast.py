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
        model: Annotated[int | None, typer.Option(min=1, help="Version of its model. [default: the newest]")] = None,
        plot: Plot = None,
        url: Url = SERVICE,
        json: Annotated[bool, typer.Option("--json", help="Print the whole answer as JSON, not a table.")] = False,
    ) -> None:
        """Print or draw what is expected to come.

        By series and horizon, and which family forecasts it.

        Exit status: 0 done, 1 refused or failed, 2 misused, 3 no service there, 5 there is none, 6 not allowed.
        """
        from app.cli.remote.forecast import Options, run

        raise typer.Exit(run(Options(url, workload, model, plot, json)))
