"""The desk of kind ``iterative``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.decisions.schemas import EncodedDecision
from app.http.query import invalid
from app.kinds.contract.engine import Answered, Asked, Query
from app.kinds.iterative.decisions import query as queries
from app.kinds.iterative.decisions.compiled import Basis
from app.kinds.iterative.decisions.decide import Subject, begin_with, decide
from app.kinds.iterative.decisions.report import EncodedReport, decode
from app.kinds.iterative.decisions.snapshot import Snapshot, states
from app.kinds.iterative.state import State, advance, pack, unpack
from app.workloads.snapshot import Serving

Read = tuple[list[int], list[float], list[float]]


class IterativeDesk:
    """A run's state is one packed row, [S]; a report in the layout's order is its levels, metrics and features."""

    quick = True
    fields: Sequence[str] = EncodedDecision.__struct_fields__

    def compile(self, serving: Serving) -> Basis:
        """Projector, heuristic and texts that recur."""
        return Basis(serving)

    def begin(
        self,
        basis: Basis,
        run: str,
        targets: Mapping[str, float],
        features: Mapping[str, float] | None,
        now: datetime,
    ) -> Answered:
        """The model's initial allocation, or the spec's without a model.

        Raises:
            Invalid, InvalidInput: targets or features that the workload hasn't.
        """
        state = queries.beginning(basis, targets, features)
        decision, levels = begin_with(basis, state, run, now)
        return Answered(decision, pack(state._replace(levels=levels[None]))[0])

    def decode(self, body: bytes) -> EncodedReport:
        """What one iteration used and measured."""
        return decode(body)

    def read(self, basis: Basis, state: object, iteration: int, report: EncodedReport) -> Read:  # noqa: ARG002
        """The report in the layout's order; any state takes it, up to the workload's last iteration.

        Raises:
            Invalid: an iteration beyond the workload's.
            InvalidInput: unknown or missing names, values out of bounds.
        """
        if iteration >= basis.layout.iterations:
            accepted = f"must be less than {basis.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        return basis.encode(report.allocation, report.metrics, report.features)

    def answer(self, basis: Basis, asked: Sequence[Asked], now: datetime) -> list[Answered]:
        """Advance each run by its report and decide, all at once."""
        batch, layout = len(asked), basis.layout
        weights, prices = basis.terms(batch)
        state = unpack(layout, np.stack([one.state for one in asked]))._replace(
            targets=_targets(basis, asked), weights=weights, prices=prices
        )
        levels, metrics, features = zip(*(one.report for one in asked), strict=True)
        after = advance(
            basis.projector,
            state,
            np.array(levels, np.int16),
            np.array(metrics),
            np.array(features).reshape(batch, len(layout.features)),
        )
        subjects = [Subject(one.run, one.iteration, one.shadow) for one in asked]
        decisions = decide(basis, after, subjects, now)
        return [Answered(*parts) for parts in zip(decisions, pack(after), strict=True)]

    def freeze(self, state: NDArray[np.float64]) -> msgspec.Raw:
        """The row; nothing instead of not-a-number."""
        return msgspec.Raw(msgspec.json.encode(state.tolist()))

    def thaw(self, stored: list[Any]) -> NDArray[np.float64]:
        """The row."""
        return np.array(stored, np.float64)

    def weight(self, state: NDArray[np.float64]) -> int:
        """Bytes of the row."""
        return state.nbytes

    def given(self, basis: Basis, query: Query) -> Snapshot | State:
        """The last iteration of some run, or a run that has not begun."""
        return queries.given(basis, query)

    def answer_given(self, basis: Basis, given: Sequence[Any], now: datetime) -> list[bytes]:
        """Decisions for what ``given`` gave."""
        out = [begin_with(basis, one, None, now)[0] if isinstance(one, State) else b"" for one in given]
        reported = [i for i, one in enumerate(given) if not out[i]]
        if reported:
            subjects = [Subject(None, given[i].iteration) for i in reported]
            decisions = decide(basis, states(basis, [given[i] for i in reported]), subjects, now)
            for i, decision in zip(reported, decisions, strict=True):
                out[i] = decision
        return out


def _targets(basis: Basis, asked: Sequence[Asked]) -> NDArray[np.float64]:
    """The targets of each run, [B, M]: its own where it has them, else those of the workload as they stand."""
    layout = basis.layout
    targets = np.tile(layout.targets, (len(asked), 1))
    for i, one in enumerate(asked):
        for name, value in one.targets.items():
            targets[i, layout.metrics.index(name)] = value
    return targets
