"""Steward's fit and decision engine in this process, without HTTP: for tuning. What is reported is served."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import numpy as np

from app.kinds.contract.engine import EncodedDecision, Pending, Snapshot
from app.kinds.contract.kind import Prior
from app.kinds.iterative.contingencies import Segment
from app.kinds.iterative.engine import CheckedReport
from app.kinds.iterative.kind import KIND
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.report import IterationRunStart
from benchmarks.held_out.play import Advice, Policy, Report
from benchmarks.held_out.world import Floats, Profile
from tests.answers import all_answered
from workers.inputs import Workload
from workers.kinds.iterative import KIND as LEARNED

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def advice_of(layout: Layout, decisions: list[dict[str, Any]]) -> Advice:
    """What E decisions of the service say."""
    allocation = np.array([[one["allocation"][name] for name in layout.resources] for one in decisions], float)
    unknown = {"low": np.nan, "high": np.nan}
    bands = [[one["predicted"].get(name, unknown) for name in layout.metrics] for one in decisions]
    low, high = (np.array([[band[end] for band in row] for row in bands], float) for end in ("low", "high"))
    return Advice(allocation, low, high)


def features_told(layout: Layout, features: list[float], upcoming: list[list[float]]) -> dict[str, Any]:
    """What a start, or a report, says of the features of its iteration and of those after it."""
    if not layout.features:
        return {}
    named, *later = [dict(zip(layout.features, row, strict=True)) for row in (features, *upcoming)]
    return {"features": named} | ({"upcoming": [{"features": one} for one in later]} if later else {})


class Engine:
    """E runs of one workload under the engine that the service answers with; ``agent`` is an exported policy, ``prior``
    what its tenant's earlier workloads say."""

    def __init__(
        self, profile: Profile, agent: bytes | None = None, model: bytes | None = None, prior: Prior | None = None
    ) -> None:
        self.name = "Steward's engine" + (", agent" if agent else "")
        self.layout, self._engine = Layout(profile.spec), KIND.engine
        fitted = fitted_model(profile) if model is None else model
        self._compiled = self._engine.compile(
            Snapshot(
                workload_id="world",
                name=profile.spec.name,
                spec_version=1,
                spec=profile.spec,
                layout=self.layout,
                model=KIND.model(fitted) if fitted else None,
                model_version=1 if fitted else None,
                agent_version=1 if agent else None,
                artifact=KIND.artifact(agent) if agent else None,
                revision=1,
                prior=prior,
            )
        )

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """Start E runs."""
        starts = [
            IterationRunStart.model_validate({"workload": "world", **features_told(self.layout, *row)})
            for row in zip(features.tolist(), upcoming.tolist(), strict=True)
        ]
        return self._taken([self._engine.begin(self._compiled, "run", start, NOW) for start in starts])

    def next(self, report: Report, segments: Sequence[Sequence[Segment]] = ()) -> Advice:
        """Report an iteration of each, with its segments, if any."""
        levels = np.rint((report.allocation - self._minima) / self._steps).astype(int).tolist()
        parts = segments or [()] * len(levels)
        announced = list(report.upcoming) if report.upcoming.size else [None] * len(levels)
        rows = zip(levels, report.metrics.tolist(), report.features.tolist(), announced, parts, strict=True)
        pending = [
            Pending("run", report.iteration, state, CheckedReport(*row), {}, None)
            for state, row in zip(self._states, rows, strict=True)
        ]
        return self._taken(all_answered(self._engine.answer(self._compiled, pending, NOW)))

    def _taken(self, answered: list[EncodedDecision]) -> Advice:
        self._states = [one.state for one in answered]
        self.decisions: list[dict[str, Any]] = [msgspec.json.decode(one.decision) for one in answered]
        return advice_of(self.layout, self.decisions)

    @property
    def _minima(self) -> Floats:
        return np.array([r.minimum for r in self.layout.spec.resources])

    @property
    def _steps(self) -> Floats:
        return np.array([r.step for r in self.layout.spec.resources])


@cache
def fitted_model(profile: Profile) -> bytes:
    """The service's domain model of a profile; nothing where it says that there is too little data."""
    from workers.estimators.base import TooLittleData

    try:
        return LEARNED.fit(Workload(profile.spec, samples=profile.executions.items), 0).model
    except TooLittleData:
        return b""


def served_heuristic(profile: Profile) -> Policy:
    """What the service decides with a model and without an agent."""
    return Engine(profile)
