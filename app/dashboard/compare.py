"""Comparison of a few runs of one kind: facts side by side, and their charts on shared axes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.charts.figures import Figure
from app.charts.overlay import overlay
from app.charts.text import NOTHING, duration, moment
from app.dashboard import lists
from app.dashboard.lists import CompiledOf, RunLine, compiler_of
from app.dashboard.rendering import page, plain
from app.dashboard.run_page import saved, units_of
from app.database.engine import Database
from app.errors import FieldError, Invalid
from app.http.dependencies import FromDatabase, FromStaleness, Tenant
from app.kinds.contract.savings import Savings
from app.runs.outcomes import Staleness
from app.runs.repository import LoadedRun
from app.runs.service import load

FEWEST, MOST = 2, 5
NOT_DRAWN = "Only on each run's page, as they can't be overlaid: {}."

router = APIRouter(include_in_schema=False)


class Row(NamedTuple):
    """A fact of each run, as texts; ``differs``: whether it is a parameter in which the runs differ."""

    name: str
    values: Sequence[str]
    differs: bool = False


class Comparison(NamedTuple):
    """Content of the page: ``parameters`` of the runs' starts, ``facts`` about their results."""

    runs: Sequence[RunLine]
    kind: str
    parameters: Sequence[Row]
    facts: Sequence[Row]
    figures: Sequence[Figure]
    problems: Sequence[str]


@router.get("/ui/compare")
def compare(
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    run: Annotated[list[Annotated[str, Query(max_length=64)]], Query(max_length=MOST)] = [],  # noqa: B006 - read only
) -> Response:
    """The page that compares runs, or the list to choose from if none is named.

    Raises NotFound (404) without one of them, Invalid (422) for other numbers.
    """
    ids = list(dict.fromkeys(run))
    if not ids:
        return RedirectResponse("/ui/runs", status_code=303)
    if not FEWEST <= len(ids) <= MOST:
        message = f"must name {FEWEST} to {MOST} different runs of one kind"
        raise Invalid(f"run {message}; {len(ids)} given", errors=[FieldError("/query/run", message, ids)])
    result = comparison(database, tenant, ids, compiler_of(request, tenant), rule)
    return page("compare.html", section="runs", result=result)


def comparison(
    database: Database, tenant: str, ids: Sequence[str], compiled_of: CompiledOf, rule: Staleness
) -> Comparison:
    """Content of the page; ``compiled_of``: returns a workload compiled as stored now.

    Raises:
        NotFound: there is no such run.
        Invalid: the runs are of several kinds.
    """
    with database.reading() as session:
        loaded = [load(session, tenant, one, rule) for one in ids]
        kinds = list(dict.fromkeys(one.kind for one in loaded))
        if len(kinds) > 1:
            message = f"must name runs of one kind, not of {' and '.join(kinds)}"
            raise Invalid(f"run {message}", errors=[FieldError("/query/run", message, list(ids))])
        histories = [lists.run_with_reports(session, one) for one in loaded]
        units = [units_of(session, one) for one in loaded]
    lines, views = lists.run_lines(database, loaded, rule), lists.views(kinds[0])
    labels = _labels(lines)
    charts: dict[str, dict[str, Figure]] = {}
    own_facts: list[dict[str, str]] = []
    problems: list[str] = []
    for label, one, history, named in zip(labels, loaded, histories, units, strict=True):
        compiled = lists.compiled_or_none(compiled_of, one.workload)
        if views is None or compiled is None:
            own_facts.append({})
            continue
        drawn = partial(views.comparison, compiled, history)
        figures, no_figures = lists.view_or_problem(f"charts of {label}", drawn)
        facts, no_facts = lists.view_or_problem(f"facts of {label}", partial(views.facts, compiled, history))
        savings = one.run.savings
        rows = saved(Savings.model_validate(savings), named) if savings is not None else ()
        own_facts.append({fact.name: fact.value for fact in [*facts, *rows]})
        problems += [problem for problem in (no_figures, no_facts) if problem]
        for figure in figures:
            charts.setdefault(figure.title, {})[label] = figure
    shown, apart = list[Figure](), list[str]()
    for title, of_runs in charts.items():
        laid, not_laid = lists.view_or_problem(f"chart {title}", lambda: [overlay(of_runs)])  # noqa: B023 - called now
        shown += [figure for figure in laid if figure is not None]
        apart += [title] if None in laid else []
        problems += [not_laid] if not_laid else []
    if apart:
        problems.append(NOT_DRAWN.format(", ".join(apart)))
    names = list(dict.fromkeys(name for facts in own_facts for name in facts))
    common = _common(lines)
    own = [Row(name, [facts.get(name, NOTHING) for facts in own_facts]) for name in names]
    # A kind may tell it too, of some of the runs: “cost so far” beside “cost”
    known = [(row.name.split()[0].rstrip("s"), row.values) for row in common]
    own = [
        row
        for row in own
        if not any(
            row.name.startswith(first)
            and all(value in (NOTHING, same) for value, same in zip(row.values, values, strict=True))
            for first, values in known
        )
    ]
    parameters = _parameters([{**_given(one.run.start), **_served(one)} for one in loaded])
    return Comparison(lines, kinds[0], parameters, [*common, *own], shown, problems)


def _labels(lines: Sequence[RunLine]) -> list[str]:
    """A label per run: its short id, with its workload where these differ."""
    several = len({one.workload for one in lines}) > 1
    return [f"{one.id[:8]} ({one.workload})" if several else one.id[:8] for one in lines]


def _given(start: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Start parameters as texts, nested ones by joined names."""
    fields: dict[str, str] = {}
    for name, value in start.items():
        if isinstance(value, Mapping):
            fields |= _given(value, f"{prefix}{name}: ")
        elif value is not None:
            fields[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else plain(value)
    return fields


def _served(loaded: LoadedRun) -> dict[str, str]:
    run = loaded.run
    agent = "none: built-in policy" if run.agent_version is None else f"agent {run.agent_version}"
    return {"workload": loaded.workload, "spec version": str(run.spec_version), "agent": agent}


def _parameters(parts: Sequence[Mapping[str, str]]) -> list[Row]:
    names = list(dict.fromkeys(name for one in parts for name in one))
    rows = [Row(name, [one.get(name, NOTHING) for one in parts]) for name in names]
    return [row._replace(differs=len(set(row.values)) > 1) for row in rows]


def _common(lines: Sequence[RunLine]) -> list[Row]:
    counted = "iterations" if any(one.stands.of is not None for one in lines) else "reports"
    texts: dict[str, list[str]] = {
        "started": [moment(one.created_at) for one in lines],
        "duration": [duration(one.seconds) for one in lines],
        counted: [one.progress for one in lines],
        "time used (of deadline)": [one.elapsed for one in lines],
        "probability of meeting targets": [one.likely for one in lines],
        "cost": [one.spent for one in lines],
    }
    return [Row(name, values) for name, values in texts.items() if any(value != NOTHING for value in values)]
