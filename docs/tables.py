"""Writes what follows from code in documents: settings, access, specs. A test tells when one is stale."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from app.http.caller import SCOPES
from app.keys.access import TABLE, need
from app.settings import Settings
from app.telemetry.attributes import ATTRIBUTES

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/making"))
from spec_reference import reference  # noqa: E402 (scripts of the documentation are no package)


def settings_table() -> str:
    """One line per setting: name, default, what it is for."""
    prefix = str(Settings.model_config.get("env_prefix", ""))
    lines = ["| variable | default | |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "–" if field.default in ("", None, ()) else f"`{field.default}`"
        lines.append(f"| `{prefix}{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines)


def access_table() -> str:
    """One line per verb and path: who may."""
    lines = ["| | " + " | ".join((*SCOPES, "a run's token", "nobody known")) + " |", "|---" * (len(SCOPES) + 3) + "|"]
    for route in TABLE:
        requested = need(*route.split(" "))
        may = [requested.public or scope in requested.scopes or scope == "admin" for scope in SCOPES]
        cells = ["yes" if one else "" for one in (*may, requested.run or requested.public, requested.public)]
        cells[len(SCOPES)] = "its run" if requested.run else cells[len(SCOPES)]
        lines.append(f"| `{route}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def specs() -> str:
    """Fields of each kind's spec, with an example."""
    return reference(json.loads((ROOT / "openapi.json").read_text()))


def attributes_table() -> str:
    """One line per attribute of spans."""
    lines = ["| attribute | |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {text} |" for name, text in ATTRIBUTES.items())])


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "docs/reference/settings.md": ("settings", settings_table),
    "docs/reference/access.md": ("access", access_table),
    "docs/reference/spec.md": ("spec", specs),
    "docs/how-to/operate.md": ("attributes", attributes_table),
}
"""By document: the name that its markers give the table, and what it is."""


def renewed(document: str, text: str) -> str:
    """A document's text with its table as it must be."""
    name, table = TABLES[document]
    begin, end = f"<!-- {name}: written by `make openapi` -->", f"<!-- /{name} -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{table()}\n\n{end}{after}"


if __name__ == "__main__":
    for document in TABLES:
        path = ROOT / document
        path.write_text(renewed(document, path.read_text()))
