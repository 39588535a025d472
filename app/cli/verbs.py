"""Groups of the API's nouns; commands that make more than one request are written here.

They follow a job, draw, read or write files, or start a command. Their modules are imported when they run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer._click.exceptions import UsageError
from typer.core import TyperCommand

from app.cli.commands import Defaulting
from app.cli.nouns import Fields, File, Wait, Workload, executions, group, names_of, place
from app.cli.operations import CHAMPION, LATEST, NEWEST, operations
from app.cli.options import LEVELS, SERVICE, STATUSES, AsJson, Margin, Output, Plot, Url, require_one_format
from app.nouns import NOUNS


def register(cli: typer.Typer) -> None:
    """Add a group for each noun of the API to the ``steward`` command, and ``forecast``, ``train`` and ``mcp``."""
    own: dict[str, dict[str, Any]] = {  # verbs that are written here, and what else a group has of its own
        "run": {"cls": Runs, "more": "`steward run -- COMMAND` launches one.", "without": ("update",)},
        "evaluate": {
            "cls": Defaulting,
            "more": "`steward evaluate WORKLOAD` creates one.",
            "without": ("show", "create"),
        },
        "agent": {"without": ("show", "create")},
        "samples": {"without": ("create", "export")},
    }
    groups = {noun.command: group(noun, **own.get(noun.command, {})) for noun in NOUNS.values() if noun.command}
    groups["run"].command(cls=PassedOn)(launch)
    groups["run"].command(epilog=STATUSES)(update)
    groups["evaluate"].command("show", epilog=STATUSES)(show_evaluation)
    groups["evaluate"].command("create")(evaluate)
    groups["agent"].command("show")(show_agent)
    groups["agent"].command("create")(train)
    groups["agent"].command()(graph)
    groups["samples"].command("create")(upload)
    groups["samples"].command()(export)
    groups["job"].command("create", epilog=STATUSES)(queue)
    for name in ("run", *(name for name in groups if name != "run")):  # the most used first
        cli.add_typer(groups[name])
    for command in (forecast, train, mcp):
        cli.command()(command)


# Runs: the client's launcher runs a user's command under Steward's decisions.


class Runs(Defaulting):
    """``steward run -- python train.py`` is short for ``steward run launch -- python train.py``."""

    default = "launch"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Name, command and remaining arguments; a UsageError also says how to launch a program of this name."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            error.message += f" `steward run -- {args[0]} …` launches it."
            raise

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the options of ``launch``, the default command, below the list of commands."""
        from steward_client.launcher.arguments import parser

        formatter.write(f"\n{parser('steward run').format_help()}")
        super().format_epilog(ctx, formatter)


class PassedOn(TyperCommand):
    """A command that parses its arguments itself, including ``--`` and ``--help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass all arguments on unparsed."""
        ctx.args = list(args)
        return ctx.args


def launch(context: typer.Context) -> None:
    """Run a command under Steward: steward run [options] -- COMMAND.

    Exit status: the command's own; if it was never started, 1 refused, 2 usage error, 3 service unreachable, 127.
    """
    from steward_client.launcher.arguments import parser

    if context.args and context.args[0] in context.help_option_names:  # before a slow import
        parser("steward run").print_help()
        return
    from steward_client.launcher.main import main

    raise typer.Exit(main(context.args, "steward run"))


def update(
    run: Annotated[str, place(operations()["run update"], "run")],
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time from its start to finish in: seconds, or 30m, 1h30m.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="Target of a metric, null: the workload's.")
    ] = None,
    max_cost: Annotated[str | None, typer.Option(metavar="COST", help="Cap on its cost; null: none.")] = None,
    max_duration: Annotated[str | None, typer.Option(metavar="TIME", help="Cap on its time; null: none.")] = None,
    output: Output = None,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Change targets and caps of one running run; others stay.

    The next decision aims at them, and they judge the run's end: steward run update newest --deadline 45m.
    """
    from steward_client.launcher.iterations.mark import SECONDS
    from steward_client.launcher.wishes import Misuse, duration

    from app.cli.remote.perform import perform
    from app.cli.remote.request import path_of
    from app.cli.remote.service import Service

    caps = {} if max_cost is None else {"cost": max_cost}
    try:
        seconds = [] if deadline is None else [f"{SECONDS}={duration(deadline)!r}"]
        if max_duration is not None:
            caps["seconds"] = "null" if max_duration == "null" else repr(duration(max_duration, "--max-duration"))
    except Misuse as error:
        raise typer.BadParameter(str(error)) from error
    fields = [f"targets.{one}" for one in (*seconds, *(target or ()))]
    if not fields and not caps:
        raise typer.BadParameter("nothing to change: name --deadline, --target, --max-cost or --max-duration")
    values = {"run": run, "fields": fields, "file": None, "output": output, "as_json": as_json, "url": url}
    if deadline is not None or caps:
        with Service(url) as service:
            result = service.call("GET", path_of(service, "/runs/{run}", values))
            workload = result["workload"]
            metrics = service.call("GET", f"/workloads/{workload}")["spec"].get("metrics", ())
        if deadline is not None and not any(one["name"] == SECONDS and one.get("scope") == "run" for one in metrics):
            raise typer.BadParameter(f"--deadline: workload {workload!r} has no {SECONDS} of scope run")
        if caps:  # the service replaces all caps of a run
            fields += [f"caps.{name}={value}" for name, value in {**result["start"].get("caps", {}), **caps}.items()]
    perform(operations()["run update"], values)


# Agents. Learning code runs in a child or a worker; the service never imports it.


def _version(value: str) -> str:
    """Callback: a version number, newest, latest or champion; raises typer.BadParameter for other texts."""
    if not value.isdecimal() and value.removeprefix("@") not in (CHAMPION, NEWEST, LATEST):
        raise typer.BadParameter(f"{value!r} is not a version: give a number, champion or newest")
    return value


versions = names_of("/workloads/{workload}/agents", "version", (NEWEST, CHAMPION))


def _algorithms(incomplete: str) -> list[str]:
    from importlib.metadata import entry_points

    names = ("auto", "online", "planner", *entry_points(group="steward.algorithms").names)
    return [name for name in names if name.startswith(incomplete)]


def graph(
    config: Annotated[str, typer.Argument(help="Name of an algorithm, or a JSON file with an agent's config.")],
    workload: Annotated[
        Path | None, typer.Option(help="JSON file with a workload's spec, which defines the spaces.")
    ] = None,
    observation: Annotated[str | None, typer.Option(help="Observation size, or candidates x features.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions, without --workload.")] = None,
    format_: Annotated[
        Literal["text", "mermaid", "dot", "json"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Print the components that a config builds.

    As a graph, with spaces, parameter counts and stage times.
    """
    from app.cli.child import run_child

    values = {"--workload": workload, "--observation": observation, "--actions": actions, "--format": format_}
    options = [part for name, value in values.items() if value is not None for part in (name, str(value))]
    raise typer.Exit(run_child("workers.learning.describe", *options, "--", config))


def show_agent(
    workload: Workload,
    version: Annotated[
        str, typer.Argument(callback=_version, help="Version number, newest or champion.", autocompletion=versions)
    ] = "newest",
    plot: Plot = None,
    output: Output = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the agent as JSON instead of its verdict.")] = False,
) -> None:
    """Print or draw the evaluation of a trained agent.

    Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized.
    """
    from app.cli.remote.agent_report import Options, run

    require_one_format(output, as_json=json)
    raise typer.Exit(run(Options(url, workload, version, plot, json, output)))


def train(
    workload: Workload,
    algorithm: Annotated[
        str, typer.Option(help="Name of an algorithm; auto lets several compete.", autocompletion=_algorithms)
    ] = "auto",
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Seeds to try, on all workers in parallel. [default: 3 with auto, else 1]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    budget: Annotated[int | None, typer.Option(min=1_000, help="Environment steps per seed.")] = None,
    executor: Annotated[Literal["serial", "processes", "ray"], typer.Option(help="Where simulations run.")] = "serial",
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Device that computes networks.")] = "auto",
    start_from: Annotated[int | None, typer.Option(min=1, help="Version of an agent to continue training.")] = None,
    imitate: Annotated[str | None, typer.Option(help="Heuristic or planner to imitate first.")] = None,
    model: Annotated[int | None, typer.Option(min=1, help="Version of the domain model. [default: newest]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Learn even where there is nothing to gain.")] = False,
    promote: Annotated[bool, typer.Option(help="Promote the agent if it is good enough.")] = True,
    window: Annotated[
        float | None, typer.Option(min=1, help="With algorithm online: window length in seconds. [default: 300]")
    ] = None,
    window_steps: Annotated[
        int | None, typer.Option(min=1_000, help="With algorithm online: environment steps per window.")
    ] = None,
    windows: Annotated[
        int | None, typer.Option(min=1, help="With algorithm online: number of windows. [default: no limit]")
    ] = None,
    margin: Margin = None,
    priority: Annotated[
        int | None, typer.Option(min=-10, max=10, help="Among the tenant's waiting jobs, highest starts first.")
    ] = None,
    plot: Plot = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the agent as JSON instead of a table.")] = False,
    require_promoted: Annotated[bool, typer.Option(help="Exit with 4 unless it becomes the champion.")] = False,
) -> None:
    """Train an agent for a workload.

    Several algorithms compete, losers stop early, and the best agent is evaluated.

    With algorithm online, training continues window by window until interrupted or --windows have passed.

    Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 4 not promoted though required,
    130 interrupted.
    """
    from app.cli.remote.train import Options, run

    request: dict[str, Any] = {
        "algorithm": algorithm,
        "seeds": seeds,
        "seed": seed,
        "budget": budget,
        "executor": executor,
    }
    request |= {"device": device, "start_from": start_from, "imitate": imitate, "model": model, "promote": promote}
    online = {"window_seconds": window, "steps": window_steps, "windows": windows}
    settings = {name: value for name, value in online.items() if value is not None}
    request |= {"equivalence_margin": margin, "online": settings or None, "priority": priority, "force": force}
    raise typer.Exit(run(Options(url, workload, request, json, require_promoted, plot)))


# Evaluations and forecasts.


def _level(value: str | None) -> str | None:
    """Callback: an evaluation's level (`L0` to `L4`) in upper case, None for None; BadParameter for other texts."""
    if value is not None and value.upper() not in LEVELS:
        raise typer.BadParameter(f"must be one of {', '.join(LEVELS)}, not {value!r}")
    return None if value is None else value.upper()


Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Version, champion or newest; repeatable. [default: champion]")
]
Evaluation = Annotated[str, place(operations()["evaluate show"], "id")]


def show_evaluation(
    id: Evaluation = NEWEST,  # noqa: A002 # as elsewhere
    output: Output = None,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Print an evaluation's results.

    It fails if there is no such evaluation, access is refused, or the service can't be reached.
    """
    from app.cli.remote.evaluate import again

    require_one_format(output, as_json=as_json)
    again(url, id, output, as_json=as_json)


def evaluate(
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


def forecast(
    workload: Workload,
    model: Annotated[int | None, typer.Option(min=1, help="Version of the domain model. [default: newest]")] = None,
    plot: Plot = None,
    output: Output = None,
    url: Url = SERVICE,
    json: Annotated[bool, typer.Option("--json", help="Print the response as JSON instead of a table.")] = False,
) -> None:
    """Print or draw a workload's forecasts.

    By series and horizon, with the model family used.

    Exit status: 0 done, 1 refused or failed, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized.
    """
    from app.cli.remote.forecast import Options, run

    require_one_format(output, as_json=json)
    raise typer.Exit(run(Options(url, workload, model, plot, json, output)))


# Samples, and jobs of any type.


Files = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Files, plain or gzip.")]
Format = Annotated[
    Literal["csv", "ndjson", "json", "swf", "wfformat"] | None,
    typer.Option("--format", help="File format. [default: by the file's suffix]"),
]
Execution = Annotated[
    str | None, typer.Option(help="Name of one execution, or the name to give a trace.", autocompletion=executions)
]


def upload(
    workload: Workload,
    files: Files,
    execution: Execution = None,
    format_: Format = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and report invalid lines.")] = False,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Upload sample files; stored samples are left unchanged.

    Exit status: 0 done, 1 refused, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized,
    130 interrupted.
    """
    from app.cli.remote.perform import upload as run

    query = {"execution": execution} if execution is not None else {}
    run(url, workload, files, format_, query | ({"skip_bad": "true"} if skip_bad else {}), as_json=as_json)


def export(
    workload: Workload,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write. [default: standard output]")] = None,
    execution: Execution = None,
    format_: Format = None,
    url: Url = SERVICE,
) -> None:
    """Export samples in a format that can be uploaded again.

    Traces are exported one at a time, selected by --execution.

    Exit status: 0 done, 1 refused, 2 usage error, 3 service unreachable, 5 not found, 6 not authorized,
    130 interrupted.
    """
    from app.cli.remote.perform import export as run

    run(url, workload, out, format_, execution)


def queue(
    what: Annotated[Literal["fit", "train", "evaluate"], typer.Argument(help="Type of job.")],
    workload: Workload,
    fields: Fields = None,
    file: File = None,
    wait: Wait = False,
    output: Output = None,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Queue a job and print it: steward job create fit resnet18."""
    from app.cli.remote.perform import perform

    line = {"fit": "model create", "train": "agent create", "evaluate": "evaluate create"}[what]
    operation = replace(operations()[line], options=(), result="")
    values = {"workload": workload, "fields": fields, "file": file, "wait": wait}
    perform(operation, {**values, "output": output, "as_json": as_json, "url": url})


def mcp(
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Offer tools that change something, after a preview.")
    ] = False,
    url: Url = SERVICE,
) -> None:
    """Serve tools for AI assistants (MCP).

    Speaks the Model Context Protocol on standard input and output. Tools only read, unless --allow-changes is given.

    Exit status: 0 input ended, 2 usage error, unusable key or not installed, 3 no address of a service, 130
    interrupted.
    """
    from app.cli.remote.mcp_server import serve

    serve(url, allow_changes=allow_changes)
