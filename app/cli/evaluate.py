"""``steward evaluate`` on the command line; what it does is imported when it is asked for."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.commands import Defaulting
from app.cli.nouns.catalogue import EVALUATION
from app.cli.nouns.commands import PLACES, Workload, group, names_of
from app.cli.nouns.contract import NEWEST
from app.cli.options import LEVELS, SERVICE, STATUSES, AsJson, Margin, Url


def _level(value: str | None) -> str | None:
    """One of the levels, in either case."""
    if value is not None and value.upper() not in LEVELS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(LEVELS)}")
    return None if value is None else value.upper()


Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Version, champion or newest; repeatable. [default: champion]")
]
Evaluation = Annotated[str, typer.Argument(help=PLACES["id"], autocompletion=names_of("/evaluations", "id", (NEWEST,)))]


def register(cli: typer.Typer) -> None:
    """Add evaluations to the ``steward`` command: ``steward evaluate WORKLOAD`` creates one."""
    evaluation = group(EVALUATION, Defaulting)
    cli.add_typer(evaluation)

    @evaluation.command(epilog=STATUSES)
    def show(id: Evaluation = NEWEST, as_json: AsJson = False, url: Url = SERVICE) -> None:  # noqa: A002 # as elsewhere
        """Print an evaluation's results."""
        from app.cli.remote.evaluate import again

        again(url, id, as_json=as_json)

    @evaluation.command()
    def create(
        workload: Workload,
        agent: Agents = None,
        url: Url = SERVICE,
        level: Annotated[str, typer.Option(callback=_level, help="Highest level to evaluate: L0 to L4.")] = "L4",
        seeds: Annotated[int, typer.Option(min=5, max=64, help="Independent simulated worlds per level.")] = 5,
        episodes: Annotated[int, typer.Option(min=8, max=16_384, help="Runs per seed and level.")] = 256,
        seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
        held_out: Annotated[float, typer.Option(help="Share to hold out at level L3.")] = 0.25,
        held_out_of: Annotated[
            Literal["executions", "users"], typer.Option(help="What to hold out a share of.")
        ] = "executions",
        margin: Margin = None,
        out: Annotated[Path, typer.Option(help="File for the report.")] = Path("evaluation.html"),
        json: Annotated[bool, typer.Option("--json", help="Print the report as JSON instead of a table.")] = False,
        require: Annotated[
            str | None, typer.Option(callback=_level, help="Exit with 4 unless every agent reaches this class.")
        ] = None,
    ) -> None:
        """Evaluate agents against every baseline.

        In worlds from fixed (L0) to hostile (L4).

        Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 4 below --require,
        130 interrupted.
        """
        from app.cli.remote.evaluate import Options, run

        agents = [int(name) if name.isdigit() else name for name in agent or ["champion"]]
        request = {"workload": workload, "agents": agents, "level": level, "seeds": seeds, "episodes": episodes}
        request |= {"seed": seed, "held_out": {"share": held_out, "of": held_out_of}}
        request |= {} if margin is None else {"equivalence_margin": margin}
        raise typer.Exit(run(Options(url, request, out, json, require)))
