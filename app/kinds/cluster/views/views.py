"""See ``app.kinds.contract.views.Views``: who had how many GPUs, who waited, what jobs learnt and gave back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.response import responses
from app.charts.spans import courses, shares
from app.charts.text import number
from app.kinds.cluster.decisions.compiled import Compiled
from app.kinds.cluster.live.decide import decide
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.views import hindsight as replay
from app.kinds.cluster.views import sharing
from app.kinds.cluster.views.applications import speeds
from app.kinds.contract.fit_errors import errors
from app.kinds.contract.views import Alternative, Fact, Hindsight, Learnt, Shown, Views

Json = Mapping[str, Any]
MOST_ASKED = 200
"""Jobs up to which other rules are asked: a page waits for them."""


def _free(compiled: Compiled, shown: Shown, free: int) -> Fact:
    """GPUs that nobody has, of those that are there."""
    whole = int(compiled.layout.capacity.sum())
    there = whole if shown.state is None else int(shown.state.capacity.sum())
    lost = f"{whole - there:,} more are reported lost" if there < whole else ""
    return Fact("free", f"{free:,} of {there:,} GPUs", lost)


class ClusterViews(Views):
    """See ``app.kinds.contract.views.Views``."""

    most = 1_000

    def facts(self, compiled: Compiled, shown: Shown) -> Sequence[Fact]:
        """See ``Views``."""
        decision: Json = shown.steps[-1].decision if shown.steps else shown.first
        found = [
            Fact("reports", f"{shown.iterations:,}"),
            Fact("time", f"{number(decision['at'])} s"),
            Fact("jobs", f"{decision['running']} run, {decision['waiting']} wait"),
            _free(compiled, shown, decision["free"]),
            Fact("rule", str(decision["rule"]).replace("_", " ")),
        ]
        given = sharing.given_back(shown.steps) if shown.every == 1 else []
        if given:
            found.append(Fact("GPUs given back", f"{given[-1][1]:,.0f}", "by jobs that have little left to gain"))
        return found

    def run(self, compiled: Compiled, shown: Shown) -> Sequence[Figure]:
        """See ``Views``."""
        if not shown.steps:
            return []
        whole = float(compiled.layout.capacity.sum())
        part = sharing.part(shown)
        told = f"GPUs of each job, one on top of the other.{part} Dashed: all there are."
        found = [shares("Who had how many GPUs", "GPUs", sharing.held(shown, whole), whole, told)]
        waiting = [(step.report["at"], float(step.decision["waiting"])) for step in shown.steps]
        found.append(courses("Jobs that wait", "jobs", {"waiting": waiting}, f"After decisions.{part}", steps=True))
        learning = sharing.learning(shown.steps)
        if learning:
            found.append(courses("What jobs have learnt", "loss or metric", learning, f"As reported, by job.{part}"))
        given = sharing.given_back(shown.steps)
        if given:
            told = f"By jobs that have little left to gain, summed; others have had them since.{part}"
            found.append(courses("What convergence gave back", "GPUs", {"given": given}, told, steps=True))
        return found

    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        """See ``Views``: how quickly applications run on more GPUs."""
        model: ClusterModel | None = compiled.snapshot.model
        curves = {} if model is None else speeds(compiled.layout, model)
        told = "As many samples a GPU as usual, GPUs on as few nodes as can be. Band: 90 % of cases."
        figure = responses("How quickly applications run", "GPUs", "samples a second", curves, told)
        return [*([figure] if curves else []), *errors(learnt.report or {})]

    def alternatives(self, compiled: Compiled, shown: Shown) -> Sequence[Alternative]:
        """See ``Views``: by each rule, of what is there now."""
        state = shown.state
        if state is None or not state.names or len(state.names) > MOST_ASKED:
            return []
        outlook = compiled.outlook(state)
        found = []
        for name, rule in compiled.layout.rules.items():
            other, changes = decide(compiled.layout, state, compiled.advice(rule, outlook, state, state))
            gpus = zip(other.names, other.jobs.gpus.tolist(), strict=True)
            words = ", ".join(f"{job}: {held}" for job, held in gpus if held) or "none has any"
            found.append(Alternative(name.replace("_", " "), words, not changes))
        return found

    def hindsight(self, compiled: Compiled, shown: Shown) -> Hindsight:
        """See ``Views``."""
        return replay.hindsight(compiled, shown)

    def details(self, decision: Json) -> Sequence[str]:
        """See ``Views``: each job that changes."""
        return [f"{one['job']}: {one['before']} → {one['gpus']} GPUs; {one['text']}" for one in decision["changes"]]
