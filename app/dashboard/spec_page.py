"""A workload's spec as a page: its parts in tables, what changed, and the JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from app.audit import service as audit
from app.charts.text import NOTHING, currency, number
from app.dashboard import lists
from app.dashboard.rendering import may, page
from app.dashboard.workload_page import length
from app.database.engine import Database
from app.http.dependencies import FromDatabase, Tenant, WorkloadName
from app.http.pagination import PageRequest
from app.kinds.contract.kind import Description
from app.kinds.registry import KINDS
from app.workloads import service as workloads
from app.workloads.service import WorkloadListed

MOST_CHANGES = 200
"""Newest changes of the spec that are shown."""
SHOWN_ABOVE = ("name", "kind")
EMPTY: tuple[Any, ...] = (None, "", [], {})

router = APIRouter(include_in_schema=False)


class Part(NamedTuple):
    """A table of a spec: objects in rows, or names with values.

    Attributes:
        hints: what the fields mean, by name in the column heads or rows.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    hints: Mapping[str, str]


class Change(NamedTuple):
    """A change of the spec, which made ``version``; ``parts``: what was changed, and to what."""

    version: int
    at: datetime
    actor: str
    parts: Sequence[tuple[str, str]]


class SpecPage(NamedTuple):
    """Content of the page of a workload's spec: its description, its parts as tables, its text (JSON), and its targets;
    ``changes`` None: the caller may not read the audit log."""

    workload: WorkloadListed
    described: Description | None
    length: str
    parts: Sequence[Part]
    changes: Sequence[Change] | None
    text: str
    targets: Mapping[str, float | None]


@router.get("/ui/workloads/{workload}/spec")
def spec(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> HTMLResponse:
    """The page of a workload's spec; raises NotFound (404) if there is none of this name."""
    return page("spec.html", section="home", result=spec_page(database, tenant, workload))


def spec_page(database: Database, tenant: str, name: str) -> SpecPage:
    """Content of the page; raises NotFound if there is no such workload."""
    with database.reading() as session:
        read = workloads.read_listed(workloads.require(session, tenant, name))
    plain = read.spec if isinstance(read.spec, dict) else read.spec.model_dump(mode="json")
    described, schema = None, dict[str, Any]()
    if read.problem is None:
        described, schema = KINDS[read.kind].describe(read.spec), KINDS[read.kind].spec.model_json_schema()
    parts = _parts(plain, schema)
    changes = _changes(database, tenant, read) if may("GET /audit") else None
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    long = "" if described is None else length(described)
    return SpecPage(read, described, long, parts, changes, text, lists.targets_of(read.spec))


# Parts: lists of objects as tables, objects and single values as rows of names and values.


def _parts(spec: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Part]:
    parts, single = list[Part](), dict[str, Any]()
    properties = schema.get("properties", {})
    for name, value in spec.items():
        if name in SHOWN_ABOVE:
            continue
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            parts.append(_table(name, value, _hints(schema, properties.get(name, {}))))
        elif isinstance(value, dict) and any(part not in EMPTY for part in value.values()):
            rows = [[words(key), cell(part)] for key, part in value.items()]
            parts.append(Part(words(name), ["", "value"], rows, _hints(schema, properties.get(name, {}))))
        elif not isinstance(value, dict):
            single[name] = value
    if single:
        rows = [[words(name), cell(value)] for name, value in single.items()]
        parts.append(Part("options", ["", "value"], rows, _hints(schema, schema)))
    return parts


def _table(name: str, objects: Sequence[Mapping[str, Any]], hints: Mapping[str, str]) -> Part:
    columns = list(dict.fromkeys(key for one in objects for key in one))
    filled = [key for key in columns if any(one.get(key) not in EMPTY for one in objects)]
    rows = [[cell(one.get(key)) for key in filled] for one in objects]
    return Part(words(name), [words(key) for key in filled], rows, hints)


def _hints(schema: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, str]:
    """Descriptions of the fields of a part of a JSON schema, by name in words."""
    hints: dict[str, str] = {}
    for one in (part, part.get("items", {}), *part.get("anyOf", ()), *part.get("allOf", ())):
        reference = one.get("$ref", "").rpartition("/")[2] or one.get("items", {}).get("$ref", "").rpartition("/")[2]
        known = schema.get("$defs", {}).get(reference, one)
        for name, field in known.get("properties", {}).items():
            if "description" in field:
                hints[words(name)] = field["description"]
    return hints


LABELS = {
    "sla": "missed targets (sla)",
    "change": "changes of the allocation (change)",
    "criterion": "limits of simulation",
    "max_steps": "largest change (steps)",
    "max_seconds": "largest time (s)",
    "max_fraction": "largest share of an iteration",
    "gpus": "GPUs",
    "memory_gb": "memory (GB)",
    "demotion_gpu_hours": "demotion (GPU-hours)",
}
"""Names of fields that a reader of a table would not understand."""


def words(name: str) -> str:
    """A field's name in words; prices have the currency, durations their unit."""
    plain = LABELS.get(name, name).replace("_", " ")
    if plain.endswith(" seconds"):
        return f"{plain.removesuffix(' seconds')} time (s)"
    return f"{plain} ({currency()})" if plain.startswith("price") else plain


def cell(value: Any) -> str:
    """A value of a spec as text; “–” for none."""
    if value in EMPTY:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value, 6)
    if isinstance(value, list):
        return ", ".join(cell(one) for one in value)
    if isinstance(value, dict):
        return "; ".join(f"{name.replace('_', ' ')} {cell(part)}" for name, part in value.items())
    return str(value).replace("_", " ") if str(value) in ("at_most", "at_least") else str(value)


# What changed: patches in the audit log, for those who may read it.


def _changes(database: Database, tenant: str, read: WorkloadListed) -> list[Change]:
    """The spec's newest changes, newest first, up to the version that was read; entries without a version are counted
    back from it."""
    request, target = PageRequest(MOST_CHANGES), f"workload {read.name}"
    rows = audit.list_entries(database, tenant, request, "workload.change", target).rows
    own = [(one, one.detail or {}) for one in rows if one.created_at >= read.created_at]  # not of an earlier one
    own = [(one, detail) for one, detail in own if detail.get("spec_version", 0) <= read.spec_version]
    return [
        Change(version, one.created_at, one.actor, _changed(detail.get("patch", {})))
        for place, (one, detail) in enumerate(own)
        if (version := detail.get("spec_version", read.spec_version - place)) > 1
    ]


def _changed(patch: Mapping[str, Any]) -> list[tuple[str, str]]:
    changes = list[tuple[str, str]]()
    for name, value in patch.items():
        if isinstance(value, dict):
            changes += [(f"{name.replace('_', ' ')}: {key}", cell(part)) for key, part in value.items()]
        else:
            changes.append((name.replace("_", " "), cell(value)))
    return changes
