"""A run's page: its kind's facts and charts, and its decisions with reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.charts.figures import Figure
from app.charts.text import in_words, money, percent
from app.dashboard import lists, repository
from app.dashboard.lists import CompiledOf
from app.database.engine import Database
from app.database.tables import Iteration, Workload
from app.kinds.contract.savings import Estimate, Savings
from app.kinds.contract.views import Alternative, Fact, Hindsight, Table
from app.kinds.registry import KINDS, read_decision, read_or_raw
from app.runs import repository as runs
from app.runs.outcomes import Staleness
from app.runs.repository import LoadedRun
from app.runs.service import RunListed, load, read_listed

DECISIONS, GROUPED, MOST_OPENED = 25, 50, 500
"""Decisions that are read at once: if each is shown; if successive ones with the same allocation are one row; and of
those that a reader has opened, when a page updates itself."""


class DecisionLine(NamedTuple):
    """A decision in a list, as texts: the newest of those with the same allocation from iteration ``first`` on."""

    first: int
    iteration: int
    allocation: str
    source: str
    policy: str
    reason: str
    shadow: str
    details: Sequence[str]
    at: datetime

    def decides_as(self, other: DecisionLine) -> bool:
        """Whether both, and their shadows, decide the same."""
        mine, theirs = ((one.allocation, one.details, one.shadow) for one in (self, other))
        return mine == theirs


class Opened(NamedTuple):
    """Decisions that a run's page shows.

    Attributes:
        every: whether each one has a row; otherwise successive ones with the same allocation share one.
        since: oldest iteration to show; None: only the newest ones are shown.
    """

    every: bool = False
    since: int | None = None


class RunPage(NamedTuple):
    """Content of a run's page.

    Attributes:
        output: last lines of the output of a run that has ended; empty: there are none.
        word: its outcome in a word.
        targets: targets of a running run, by metric, which can be changed; empty: it can have none of its own.
        caps: a running run's own caps by name, which can be changed; None: it can have none.
        older: iteration before which there are more decisions; None: there are none.
        opened: which decisions are shown.
        problems: parts that can't be shown, with reasons.
    """

    run: RunListed
    kind: str
    facts: Sequence[Fact]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    alternatives: Sequence[Alternative]
    decisions: Sequence[DecisionLine]
    older: int | None
    problems: Sequence[str]
    output: str
    targets: Mapping[str, float | None]
    caps: Mapping[str, float] | None
    opened: Opened


def page(
    database: Database, tenant: str, run: str, compiled_of: CompiledOf, rule: Staleness, opened: Opened
) -> RunPage:
    """Content of a run's page; raises NotFound if there is no such run.

    ``compiled_of``: returns a workload compiled as stored now; ``rule``: when a live run is stale; ``opened``: which
    decisions are shown.
    """
    with database.reading() as session:
        loaded = load(session, tenant, run, rule)
        views = lists.views(loaded.kind)
        history = lists.run_with_reports(session, loaded)
        lines, older = decisions(session, loaded, None, opened)
        output, units = runs.output(session, loaded.run.id) or "", units_of(session, loaded)
    facts: list[Any] = [Fact("reports", f"{loaded.run.next_iteration:,}")]
    figures: list[Any] = []
    tables: list[Any] = []
    others: list[Any] = []
    problems: list[str] = []
    compiled = lists.compiled_or_none(compiled_of, loaded.workload)
    if views is not None and compiled is not None:
        facts, no_facts = lists.view_or_problem("the state", lambda: views.facts(compiled, history))
        figures, no_figures = lists.view_or_problem("its charts", lambda: views.run(compiled, history))
        others, no_others = lists.view_or_problem(
            "other policies", lambda: views.alternatives(compiled, history) if history.live else []
        )
        tables, no_tables = lists.view_or_problem("its tables", lambda: views.tables(compiled, history))
        problems = [problem for problem in (no_facts, no_figures, no_tables, no_others) if problem]
    run_read = read_listed(loaded)
    facts = [*facts, *(saved(run_read.savings, units) if run_read.savings is not None else ())]
    own, targets = loaded.run.start, dict[str, float | None]()
    fields = KINDS[loaded.kind].start.model_fields if run_read.state == "running" and compiled is not None else {}
    if "targets" in fields:
        usual = lists.targets_of(compiled.snapshot.spec)
        targets = {name: value for name, value in usual.items() if value is not None} | own.get("targets", {})
    caps = own.get("caps", {}) if "caps" in fields else None
    return RunPage(
        *(run_read, loaded.kind, facts, figures, tables, others, lines, older, problems, output, targets, caps, opened)
    )


def units_of(session: Session, loaded: LoadedRun) -> dict[str, str]:
    """Units of a run's resources by name, as its workload's spec states them now."""
    spec = session.scalar(select(Workload.spec).where(Workload.id == loaded.run.workload_id)) or {}
    return {str(one.get("name")): str(one.get("unit", "")) for one in spec.get("resources", ())}


def saved(savings: Savings, units: Mapping[str, str]) -> list[Fact]:
    """Facts: cost that a finished run saved against fixed allocations, or that its recommendations would have saved."""

    def text(value: Estimate, sign: float = 1.0) -> str:
        words = lists.saved_in_words(sign * value.value)
        if value.low is None or value.high is None:
            return words
        way = sign if sign * value.value >= 0 else -sign  # bounds of a loss are losses
        low, high = (money(bound) for bound in sorted((way * value.low, way * value.high)))
        return words if low == high else f"{words} ({low} to {high})"

    facts = []
    for what, one in (("largest", savings.largest), ("best fixed, with hindsight", savings.best_fixed)):
        words = in_words(one.allocation or {}, units)
        hint = what if one.saved is None else f"{what}; {percent(savings.level, 0)} of models"
        amount = text(one.saved) if one.saved else one.unmeasured or "unknown"
        facts.append(Fact(f"saved against {words}", amount, hint))
    if savings.advised is not None:
        met = savings.advised.meets_targets
        hint = "" if met is None else f"targets met by {percent(met, 0)} of models"
        amount = text(savings.advised.saved, -1.0) if savings.advised.saved else savings.advised.unmeasured or "unknown"
        facts.append(Fact("recommendations would have saved", amount, hint))
    return facts


def hindsight(database: Database, tenant: str, run: str, compiled_of: CompiledOf, rule: Staleness) -> Hindsight:
    """Decisions that other policies would have made in a run; raises NotFound if there is no such run.

    ``compiled_of``: returns a workload compiled as stored now; ``rule``: when a live run is stale.
    """
    with database.reading() as session:
        loaded = load(session, tenant, run, rule)
        history = lists.run_with_reports(session, loaded)
    views, compiled = lists.views(loaded.kind), lists.compiled_or_none(compiled_of, loaded.workload)
    if views is None or compiled is None:
        return Hindsight([], "Not available: the workload can't be read, or its kind has no charts of runs.")
    result, problem = lists.view_or_problem("other policies", lambda: [views.hindsight(compiled, history)])
    return Hindsight([], problem) if problem else result[0]


def decisions(
    session: Session, loaded: LoadedRun, before: int | None, opened: Opened
) -> tuple[list[DecisionLine], int | None]:
    """Decisions before iteration ``before`` (None: the newest), newest first: 25 if every one is shown, else 50 of
    which successive ones with the same allocation are one line; those from ``opened.since`` on if that is more, at
    most 500.

    The second value is ``before`` of the next older ones, None if there are none.
    """
    end = loaded.run.next_iteration if before is None else min(before, loaded.run.next_iteration)
    first = end - (DECISIONS if opened.every else GROUPED)
    first = max(0, first if opened.since is None else max(end - MOST_OPENED, min(opened.since, first)))
    rows = repository.iterations(session, loaded.run.id, range(first, end))
    lines: list[DecisionLine] = []
    units = units_of(session, loaded)
    for row in reversed(rows):
        line = decision_line(row, loaded.kind, units)
        if lines and not opened.every and lines[-1].decides_as(line):
            lines[-1] = lines[-1]._replace(first=line.iteration)
        else:
            lines.append(line)
    return lines, first if first > 0 and rows else None


def decision_line(row: Iteration, kind: str, units: Mapping[str, str]) -> DecisionLine:
    """A stored decision in words; an unreadable one gives the problem as its reason."""
    iteration, decision, at = row.iteration, row.decision, row.reported_at
    read, problem = read_or_raw(read_decision, {"kind": kind, **decision})
    allocation = decision.get("allocation")
    known = allocation if isinstance(allocation, dict) and allocation.keys() <= units.keys() else None
    words = problem or (KINDS[read.kind].summarise(read) if known is None else in_words(known, units))
    source, policy = str(decision.get("source", "")), str(decision.get("policy", ""))
    views = lists.views(kind)
    details, _ = (
        ([], "") if views is None else lists.view_or_problem("a decision's parts", lambda: views.details(decision))
    )
    return DecisionLine(
        iteration, iteration, words, source, policy, lists.reason(decision), _shadow(decision, units), details, at
    )


def _shadow(decision: dict[str, Any], units: Mapping[str, str]) -> str:
    """The shadow agent's decision in one or two words; empty without a shadow."""
    shadow = decision.get("shadow")
    if not isinstance(shadow, dict):
        return ""
    if shadow.get("problem"):
        return str(shadow["problem"])
    if shadow.get("agrees"):
        return f"agent {shadow.get('agent')} agrees"
    allocation = shadow.get("allocation")
    words = in_words(allocation, units) if isinstance(allocation, dict) else "otherwise"
    return f"agent {shadow.get('agent')}: {words}"
