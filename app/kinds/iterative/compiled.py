"""Compiled workloads, one per revision: projector, policy, and cached texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from operator import le
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.charts.text import in_words, number, quantity
from app.kinds.contract.engine import Snapshot
from app.kinds.contract.inputs import LARGEST_NUMBER, SMALLEST_NUMBER
from app.kinds.engine import NO_AGENT, DecidedBy, deciding_policy
from app.kinds.iterative.heuristics import HEURISTICS, MODEL_PREDICTIVE, default_heuristic, own_terms
from app.kinds.iterative.observation import Preferences, preferences_of
from app.kinds.iterative.policies import in_force
from app.kinds.iterative.prior import is_supported, prior_table
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import AllocationText, wording
from app.kinds.iterative.state import RunState, State, begin, restart_belief
from app.policies.artifact import Artifact

Array = NDArray[np.floating]


class Compiled:
    """A workload's snapshot, compiled for decisions.

    Attributes:
        snapshot, layout, projector: the workload, its layout, and its domain model.
        belief: identifies the model of which runs estimate their effect: the version of the domain model or, without
            one, minus 1 minus a hash of the targets, which set the prior's scale, and of what the prior was made of.
        agent: the champion's policy; None: the heuristic decides.
        heuristic: name of the policy that decides without a champion, or if it fails; per run: ``heuristics``.
        chosen: rule that the snapshot names; None: none.
        decided_by: the policy that decides unless it fails.
        unknown: NaN for each metric.
        words: wording of each metric in texts.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.layout = snapshot.layout
        if not is_supported(self.layout):  # a target may have been removed since
            snapshot = replace(snapshot, prior=None)
        self.snapshot, fitted, prior = snapshot, snapshot.model, snapshot.prior
        model = in_force(fitted, self.layout.spec) if fitted else prior_table(self.layout, prior)
        self.projector = Projector(self.layout, model)
        made_of = self.layout.targets.tobytes() + msgspec.json.encode(prior, order="sorted")
        self.belief = (snapshot.model_version or 0) if fitted else -1 - crc32(made_of)
        self.chosen = replace(HEURISTICS[snapshot.rule], everywhere=True) if snapshot.rule else None
        self.heuristic = (self.chosen or default_heuristic(self.projector)).name
        self.agent: Artifact | None = snapshot.artifact
        name = None if self.agent is None else self.agent.policy.name
        self.decided_by = deciding_policy(snapshot, name, self.heuristic, explained=True)
        self.preface = lru_cache(maxsize=16)(self._preface)
        self._levels = [(r.name, {r.amount(i): i for i in range(r.levels)}) for r in self.layout.spec.resources]
        self._lowest = [feature.minimum for feature in self.layout.spec.features]
        self._highest = [feature.maximum for feature in self.layout.spec.features]
        self._counts = (len(self.layout.resources), len(self.layout.metrics), len(self.layout.features))
        self.words = [wording(metric) for metric in self.layout.spec.metrics]
        self.unknown = [float("nan")] * len(self.layout.metrics)
        self.allocation_text = lru_cache(maxsize=4096)(self._allocation_text)
        self.fresh = lru_cache(maxsize=128)(self._fresh)
        self._usual = lru_cache(maxsize=128)(lambda batch: preferences_of(self.projector, self.fresh(batch)))
        self.delta = lru_cache(maxsize=4096)(self._delta)

    def _preface(self, decided_by: DecidedBy, name: str) -> str:
        """Return a text that says why heuristic ``name`` decides, with its evidence; "" without a reason to state."""
        table = self.projector.table
        evidence = f" ({table.evidence})" if decided_by.why == NO_AGENT and name == table.rule else ""
        return f"{decided_by.preface(name)}{evidence}"

    def row(self, state: RunState) -> NDArray[np.float64]:
        """Return a run's packed state [S], with its factor on the model (run effect) estimated anew under another
        model."""
        if state.belief in (self.belief, 0):
            return state.row
        return restart_belief(self.projector, state.row, related=state.belief > 0 and self.belief > 0)

    def heuristics(self, state: State) -> list[str]:
        """Return, for each of B runs, the name of the heuristic that decides where no agent does."""
        rules = [self.heuristic] * len(state.iteration)
        if self.heuristic == MODEL_PREDICTIVE or self.chosen:
            return rules
        own = own_terms(self.projector, state)
        if not own.any():
            return rules
        return [MODEL_PREDICTIVE if one else self.heuristic for one in own.tolist()]

    def encode(
        self, allocation: Mapping[str, float], metrics: Mapping[str, float], features: Mapping[str, float]
    ) -> tuple[list[int], list[float], list[float]]:
        """Return a report in the layout's order: levels of R resources, M metrics, F features; fast for valid reports.

        Raises:
            InvalidInput: a name is unknown or missing, or a value out of bounds, off the step grid, or not finite.
        """
        layout = self.layout
        try:
            levels = [known[allocation[name]] for name, known in self._levels]
            measured = [metrics[name] for name in layout.metrics]
            values = [features[name] for name in layout.features]
        except KeyError:
            return layout.encode_report(allocation, metrics, features)
        counts = (len(allocation), len(metrics), len(features))
        sound = counts == self._counts and min(measured) >= SMALLEST_NUMBER and max(measured) <= LARGEST_NUMBER
        if not sound or (values and not self._within(values)):
            return layout.encode_report(allocation, metrics, features)
        return levels, measured, values

    def _within(self, features: list[float]) -> bool:
        return all(map(le, self._lowest, features)) and all(map(le, features, self._highest))

    def _allocation_text(self, index: int) -> AllocationText:
        allocation = self.layout.allocation_dict(self.projector.grid_levels[index])
        maximum = all(allocation[one.name] == one.maximum for one in self.layout.spec.resources)
        encoded = msgspec.Raw(msgspec.json.encode(allocation))
        return AllocationText(encoded, in_words(allocation, self.layout.units), self._beyond(index), maximum)

    def _beyond(self, index: int) -> str:
        """Return a text on resources whose allocation, grid row ``index``, is outside the measured range; "": none."""
        table, units = self.projector.table, self.layout.allocations[index]
        outside = (units < table.seen_low - 1e-9) | (units > table.seen_high + 1e-9)
        bounds = zip(self.layout.resources, table.seen_low, table.seen_high, outside, strict=True)
        beyond = [
            quantity(f"{number(low, 9)} to {number(high, 9)}", name, self.layout.units[name])
            for name, low, high, is_outside in bounds
            if is_outside
        ]
        return f"outside the measured range ({', '.join(beyond)})" if beyond else ""

    def _delta(self, before: int, after: int) -> msgspec.Raw:
        grid = self.projector.grid_levels
        return msgspec.Raw(msgspec.json.encode(self.layout.delta_dict(grid[before], grid[after])))

    def _fresh(self, batch: int) -> State:
        return begin(self.projector, np.tile(self.layout.start_levels, (batch, 1)))

    def preferences(self, state: State) -> Preferences | None:
        """Return cached quantities derived from targets, weights and prices; None unless all runs have the workload's
        targets and no feature affects cost."""
        batch = len(state.iteration)
        known = self.projector.ahead.cells == 1 and state.targets is self.fresh(batch).targets
        return self._usual(batch) if known else None

    def pause(self, moved: NDArray[np.integer], started: NDArray[np.bool_]) -> Array:
        """Return the seconds, [B], that a change by ``moved`` levels [B, R] takes; 0 for runs not ``started`` [B]."""
        pause: Array = ((moved != 0) @ self.projector.change_seconds) * started
        return pause


# Notices beside a decision's reason: shown once, and again after a change. A run's state keeps their codes.


NONE: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def codes(*notices: str) -> frozenset[int]:
    """Return the code of each notice, the CRC-32 of its text, under which a run's state stores it; none for ""."""
    return frozenset(crc32(notice.encode()) for notice in notices if notice)


def add_notices(text: str, notice: str, beyond: str, known: frozenset[int], lasting: str) -> tuple[str, frozenset[int]]:
    """Return a reason's ``text`` with ``notice`` before and ``beyond`` after it unless shown before, and their codes.

    ``known``: codes of notices in the run's last decision. The code of the notice ``lasting`` is kept while another one
    is shown, as it stays true. Empty notices are left out."""
    if not (notice or beyond or known):
        return text, NONE
    before, after, present = _around(notice, beyond, known, lasting)
    return f"{before}{text}{after}", present


@lru_cache(maxsize=1024)
def _around(notice: str, beyond: str, known: frozenset[int], lasting: str) -> tuple[str, str, frozenset[int]]:
    before = "" if codes(notice) <= known else f"{notice}: "
    after = "" if codes(beyond) <= known else f"; {beyond}"
    return before, after, codes(notice, beyond) | (known & codes(lasting))
