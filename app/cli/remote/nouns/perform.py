"""An action done: the call, and its answer told."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from app.cli.nouns.contract import Action
from app.cli.remote import progress_bar as bar
from app.cli.remote.evaluate import words
from app.cli.remote.nouns.files import written
from app.cli.remote.nouns.request import content_of, path_of
from app.cli.remote.nouns.tables import table
from app.cli.remote.nouns.tree import tree
from app.cli.remote.service import Json, RefusedError, Service

PAGE = 500
PIPED_COLUMNS = 10_000
"""Width of tables that are not written to a terminal: more than any row needs."""
WATCH_SECONDS = 1.0


def perform(action: Action, said: Json, output: Console | None = None, notes: Console | None = None) -> None:
    """Do it. What is answered goes to `output`, all else to `notes`.

    Raises:
        RefusedError, UnreachableError: see there.
        typer.BadParameter: what is to be sent can't be read.
    """
    output, notes = output or _standard_output(), notes or Console(stderr=True)
    content = content_of(action, said)
    with Service(said["url"]) as service:
        path = path_of(service, action, said)
        if action.columns:
            _watched(said, output, lambda: _listed(service, action, path, content, said))
        elif action.suffix:
            written(said["out"], service.stream(path, **content))
            _done(said, {"file": str(said["out"])}, f"{action.verb}: {said['out']}", output, notes)
        elif action.told:
            service.send(action.method, path, **content)
            named = {name: said[name] for name in action.arguments}
            _done(said, named, action.told.format(**said), output, notes)
        elif action.result is not None:
            answer = service.call(action.method, path, **content)
            _tell(_result(service, action, answer, said, notes), said, output)
        else:
            _watched(said, output, lambda: _shown(service.call(action.method, path, **content), said))


def _standard_output() -> Console:
    """As wide as the terminal or `COLUMNS`. In a pipe nothing is cut: `grep` would not find it."""
    output = Console()
    if not output.is_terminal and "COLUMNS" not in os.environ:
        output.width = PIPED_COLUMNS
    return output


def _listed(service: Service, action: Action, path: str, content: Json, said: Json) -> Iterator[Any]:
    """What is to be printed of a list: lines of JSON as they come, or a table."""
    items = _items(service, path, content, None if said["all"] else said["limit"])
    if said["as_json"]:
        yield from (json.dumps(item) for item in items)
        return
    rows = list(items)
    yield table(action.columns, rows) if rows else Text("none")
    if not said["all"] and len(rows) == said["limit"]:
        yield Text(f"the first {len(rows):,}; --all has all")


def _items(service: Service, path: str, content: Json, most: int | None) -> Iterator[Json]:
    """Items of all pages, or the first of them."""
    content = {"params": {**content["params"], "limit": min(most or PAGE, PAGE)}}

    def pages() -> Iterator[Json]:
        page = service.call("GET", path, **content)
        yield from page["items"]
        while page["next"]:
            page = service.call("GET", page["next"])
            yield from page["items"]

    return islice(pages(), most)


def _shown(answer: Json, said: Json) -> Iterator[Any]:
    said["ended"] = answer.get("finished_at") is not None
    if said["as_json"]:
        yield json.dumps(answer)
    else:
        yield Text("\n".join(tree(answer)))


def _done(said: Json, document: Json, words: str, output: Console, notes: Console) -> None:
    """Say what was done where nothing is answered."""
    if said["as_json"]:
        _print(output, json.dumps(document))
    else:
        notes.print(Text(words), soft_wrap=True)


def _tell(answer: Json, said: Json, output: Console) -> None:
    for part in _shown(answer, said):
        _print(output, part)


def _print(output: Console, part: Any) -> None:
    """Texts as they are, however long their lines; tables as wide as there is room."""
    output.print(part, soft_wrap=isinstance(part, str | Text), markup=False, highlight=False)


def _watched(said: Json, output: Console, parts: Callable[[], Iterator[Any]]) -> None:
    """Print once; or, to be watched, anew when it has changed: in place on a terminal, below elsewhere."""
    if not said.get("watch"):
        for part in parts():
            _print(output, part)
        return
    if output.is_terminal and not said["as_json"]:
        with Live(console=output, auto_refresh=False) as live:
            while True:
                live.update(Group(*parts()), refresh=True)
                if said.get("ended"):
                    return
                time.sleep(WATCH_SECONDS)
    before: list[str] = []
    while True:
        found = [*_rendered(output, parts())]
        for line in found if found != before else ():
            _print(output, Text(line))
        if said.get("ended"):
            return
        before = found
        time.sleep(WATCH_SECONDS)


def _rendered(output: Console, parts: Iterator[Any]) -> Iterator[str]:
    for part in parts:
        with output.capture() as capture:
            _print(output, part)
        yield capture.get().removesuffix("\n")


def _result(service: Service, action: Action, job: Json, said: Json, notes: Console) -> Json:
    """What came of a job; it is cancelled where who asked for it waits no longer."""
    if not said.get("wait", True):
        return job
    try:
        ended = bar.follow(notes, job["type"], service.follow(job["id"]), words)
    except KeyboardInterrupt:
        if action.result:
            with suppress(RefusedError):  # it has ended meanwhile
                service.call("POST", f"/jobs/{job['id']}/cancel")
        raise
    return service.call("GET", action.result.format(**said, **ended["result"])) if action.result else ended
