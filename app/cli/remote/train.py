"""``steward train``: have a running service train an agent, follow it, and print how it went and what came of it."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.charts.text import fixed, moment, percent
from app.cli.child import draw_agent
from app.cli.failures import exit_status
from app.cli.options import DONE, INTERRUPTED, REFUSED, UNMET
from app.cli.remote import progress_bar as bar
from app.cli.remote.outcomes import compared
from app.cli.remote.service import Json, RefusedError, Service, UnreachableError


@dataclass(frozen=True)
class Options:
    """What may be said on the command line; of the request, what is None is not sent."""

    url: str
    workload: str
    request: dict[str, Any]
    as_json: bool = False
    require_promoted: bool = False
    plot: Path | None = None


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Do it; the exit status. What came of it goes to `output`, progress and complaints to `notes`."""
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            result = _ended(service, options, notes)
            agent = _agent(service, options, result)
    except KeyboardInterrupt:
        notes.print("interrupted: the training is cancelled")
        return INTERRUPTED
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(f"steward: {error}", "red"), soft_wrap=True)
        return exit_status(error)
    if agent is None:
        notes.print(Text(f"no window brought a better agent; of the last one: {result['last']['reason']}"))
        return UNMET if options.require_promoted else DONE
    if options.as_json:
        output.print(json.dumps(agent), soft_wrap=True, markup=False, highlight=False)
    else:
        show(agent, output)
    if not drawn(agent, options.plot, notes):
        return REFUSED
    return DONE if agent["promoted"] or not options.require_promoted else UNMET


def drawn(agent: Json, file: Path | None, notes: Console) -> bool:
    """Draw an agent's report where a file is given; whether that could be done."""
    if file is None:
        return True
    if draw_agent(agent, file):
        return False
    notes.print(Text(f"report: {file}"))
    return True


def _ended(service: Service, options: Options, notes: Console) -> Json:
    """What came of the training; it is cancelled where nobody waits for it any more."""
    request = {name: value for name, value in options.request.items() if value is not None}
    job = service.call("POST", _agents(options), json=request)
    try:
        result: Json = bar.follow(notes, "train", service.follow(job["id"]), words)["result"]
    except KeyboardInterrupt:
        with suppress(RefusedError):  # it has ended meanwhile
            service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return result


def _agent(service: Service, options: Options, result: Json) -> Json | None:
    """The agent, of a training that went on the last one; None where no window brought one."""
    version = result["agent"]
    return None if version is None else service.call("GET", f"{_agents(options)}/{version}")


def _agents(options: Options) -> str:
    return f"/workloads/{options.workload}/agents"


def words(event: Json) -> str:
    """What is worth saying beside the bar: who learns, and the figures of its last chunk."""
    parts = [bar.remaining(event), event.get("phase", "")]
    if event.get("phase") == "learning":
        several = event.get("trials", 1) > 1
        parts[1] = f"{event['algorithm']} seed {event['seed']}" if several else event["algorithm"]
        parts += [text.format(event[name]) for name, text in FIGURES.items() if event.get(name) is not None]
    if event.get("last"):
        parts.append(f"window {event['windows']}: {event['last']['verdict']}")
    return ", ".join(part for part in parts if part)


FIGURES = {
    "episode_return": "training return {:.3f}",
    "loss": "loss {:.4f}",
    "exploration": "exploration {:.3f}",
    "steps_per_second": "{:,.0f} steps/s",
}
"""What of a learner's last chunk is told, and how."""


def show(agent: Json, output: Console) -> None:
    """Print who competed, and the verdict in words."""
    report = agent["report"]
    if len(report.get("bracket", ())) > 1:
        output.print(bracket(report["bracket"]))
    output.print(Text(f"agent {agent['version']}: {agent['algorithm']}, {_promotion(agent)}", "bold"))
    if agent.get("standing_reason"):
        output.print(Text(agent["standing_reason"], "bold"))
    if agent.get("instead"):
        output.print(Text(f"answers now: {agent['instead']}"))
    judged = _moment(agent.get("created_at"))
    verdict = Text(f"verdict when its training ended{f', {judged}' if judged else ''}: {report['reason']}")
    counted = [compared(report["outcomes"])] if report.get("outcomes") else []
    past = bool(agent.get("standing_reason"))  # then no figure stands before the date of the verdict that it is of
    output.print(*([verdict, *counted] if past else [*counted, verdict]), sep="\n")
    output.print(Text(f"return {_interval(report['return'])}{_gap(report)}"))
    if alone := _alone(report):
        output.print(Text(alone))


def _alone(report: Json) -> str:
    """What the best network reaches by itself, whoever is published; nothing where none was trained."""
    found = report.get("learned")
    if found is None:
        return ""
    return f"{found['algorithm']} by itself, seed {found['seed']}: return {_interval(found['return'])}{_gap(found)}"


def _promotion(agent: Json) -> str:
    """What it is now."""
    since, until = (_moment(agent.get(name)) for name in ("champion_since", "champion_until"))
    if agent["champion"]:
        return f"champion since {since}" if since else "champion"
    return f"was champion until {until}" if until else "never promoted"


def _moment(text: str | None) -> str:
    return moment(None if text is None else datetime.fromisoformat(text))


def _interval(found: Json) -> str:
    mean, low, high = (fixed(found[part], 5) for part in ("mean", "low", "high"))
    return f"{mean} (95 % interval {low} to {high})"


def _gap(report: Json) -> str:
    gap = report.get("gap_to_optimum")
    return "" if gap is None else f", {percent(gap, 2)} from the exact optimum"


def bracket(rows: list[Json]) -> Table:
    """Every trial: how far it came, its best return on the validation episodes, and why it went no further."""
    table = Table()
    for name, right in (("algorithm", False), ("seed", True), ("budget", True), ("steps", True), ("score", True)):
        table.add_column(name, justify="right" if right else "left")
    table.add_column("ended")
    for row in rows:
        ended = row["ended"] or ("chosen" if row["chosen"] else "went to its end")
        cells = [
            row["algorithm"],
            row["seed"],
            percent(row["share"], 0),
            f"{row['steps']:,}",
            _score(row["score"]),
            ended,
        ]
        style = "bold green" if row["chosen"] else ""
        table.add_row(*(Text("–" if cell is None else str(cell), style) for cell in cells))
    return table


def _score(value: float | None) -> str | None:
    return None if value is None else fixed(value, 5)
