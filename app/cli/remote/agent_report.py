"""``steward agent show``: prints and draws an agent's report from the end of its training."""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from app.cli.failures import RefusedError, UnreachableError, exit_status
from app.cli.options import DONE, REFUSED, Format
from app.cli.remote.output import document, print_parts
from app.cli.remote.request import meant
from app.cli.remote.service import Service
from app.cli.remote.train import draw_report, show


@dataclass(frozen=True)
class Options:
    """Options of ``steward agent show``; ``plot``: file for a drawing, None: none; ``form``: output format, None:
    text."""

    url: str
    workload: str
    version: str
    plot: Path | None = None
    as_json: bool = False
    form: Format | None = None


def run(options: Options, output: Console | None = None, notes: Console | None = None) -> int:
    """Print the report to `output` and errors to `notes` (None: standard streams). Returns 0 done, 1 refused or not
    drawn, 3 unreachable, 5 not found, 6 not authorised."""
    output, notes = output or Console(), notes or Console(stderr=True)
    try:
        with Service(options.url) as service:
            path = f"/workloads/{options.workload}/agents"
            agent = service.call("GET", f"{path}/{meant(service, path, 'version', options.version)}")
    except (RefusedError, UnreachableError) as error:
        notes.print(Text(f"steward: {error}", "red"), soft_wrap=True)
        return exit_status(error)
    if options.as_json:
        print_parts(output, [json.dumps(agent)])
    elif options.form not in (None, "table", "wide"):
        print_parts(output, document(agent, options.form, str(agent["version"])))
    else:
        show(agent, output)
    return DONE if draw_report(agent, options.plot, notes) else REFUSED
