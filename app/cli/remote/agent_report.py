"""``steward agent report``: how an agent was judged when its training ended, told again, and drawn."""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from app.cli.options import DONE, REFUSED, UNREACHABLE
from app.cli.remote.service import Json, RefusedError, Service, UnreachableError
from app.cli.remote.train import drawn, show

CHAMPION, NEWEST = "champion", "newest"


@dataclass(frozen=True)
class Options:
    """What may be said on the command line."""

    url: str
    workload: str
    version: str
    plot: Path | None = None
    as_json: bool = False


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Do it; the exit status. The report goes to `output`, complaints to `notes`."""
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            path = f"/workloads/{options.workload}"
            agent = service.call("GET", f"{path}/agents/{_version(service, path, options.version)}")
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(str(error), "red"))
        return UNREACHABLE if isinstance(error, UnreachableError) else REFUSED
    if options.as_json:
        output.print(json.dumps(agent, indent=1), soft_wrap=True, markup=False, highlight=False)
    else:
        show(agent, output)
    return DONE if drawn(agent, options.plot, notes) else REFUSED


def _version(service: Service, path: str, requested: str) -> int:
    """The version that is meant.

    Raises:
        RefusedError: there is none yet, or no champion.
    """
    if requested == CHAMPION:
        found = service.call("GET", path)["champion"]
        if found is None:
            raise RefusedError({"title": "No champion", "detail": f"a heuristic answers for {path} at present"})
        return int(found)
    if requested == NEWEST:
        agents: list[Json] = service.call("GET", f"{path}/agents?limit=1")["items"]
        if not agents:
            raise RefusedError({"title": "No agent", "detail": f"none was trained yet: POST {path}/agents trains one"})
        return int(agents[0]["version"])
    return int(requested)
