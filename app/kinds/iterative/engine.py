"""The engine of kind ``iterative``; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Answered, Pending, Query, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.iterative import query as queries
from app.kinds.iterative.announced import encode_upcoming, padded
from app.kinds.iterative.compiled import NONE, Compiled, with_codes, without_codes
from app.kinds.iterative.decide import Subject, begin_with, decide
from app.kinds.iterative.heuristics import HEURISTICS, WITHOUT_MODEL
from app.kinds.iterative.query import GivenState, states
from app.kinds.iterative.report import EncodedReport, IterationRunStart, decode
from app.kinds.iterative.state import State, advance, aligned, pack, unpack
from app.policies import artifact

Array = NDArray[np.float64]
NOTHING: Array = np.zeros((0, 0))


class Read(msgspec.Struct, frozen=True):
    """A report in the layout's order: levels [R], metrics [M], features [F], and of the announced iterations [U, F];
    None where it says nothing of those.
    """

    levels: list[int]
    metrics: list[float]
    features: list[float]
    upcoming: Array | None = None


class Kept(msgspec.Struct, frozen=True):
    """A run's state: one packed row, [S], the announced features of the iterations ahead, [U, F], codes of what its
    last decision said beside its reason, and what recurrent agents remember of it.
    """

    row: Array
    upcoming: Array
    notices: frozenset[int] = NONE
    memories: artifact.Memories = artifact.NOTHING


FEW_ANNOUNCED = 100  # reading and weighing them takes some 3 ms


class IterativeEngine:
    """Decides for runs of iterations; a run's state is ``Kept``."""

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Projector, heuristic and texts that recur."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """All heuristics; without a domain model those that need none."""
        return tuple(HEURISTICS if compiled.projector.table.informed else WITHOUT_MODEL)

    def begin(self, compiled: Compiled, run: str, start: IterationRunStart, now: datetime) -> Answered:
        """The model's initial allocation, or the spec's without a model.

        Raises:
            InvalidInput: an iteration, targets, probabilities or features that the workload hasn't.
        """
        state = queries.beginning(
            compiled,
            start.targets,
            start.features,
            start.probabilities,
            upcoming=start.upcoming,
            first=start.first_iteration,
        )
        answer, levels = begin_with(compiled, state, run, now)
        row = pack(state._replace(levels=levels[None]))[0]
        kept = Kept(row, state.upcoming[0], answer.notices)
        return Answered(answer.decision, kept, risk=answer.risk, expected_seconds=answer.expected_seconds)

    def decode(self, body: bytes) -> EncodedReport:
        """What one iteration used and measured."""
        return decode(body)

    def takes_long(self, compiled: Compiled, state: Kept, report: EncodedReport) -> bool:  # noqa: ARG002
        """Whether many iterations are announced, by this report or before."""
        announced = report.upcoming if isinstance(report.upcoming, list) else state.upcoming
        return len(announced) > FEW_ANNOUNCED

    def read(self, compiled: Compiled, state: object, iteration: int, report: EncodedReport) -> Read:  # noqa: ARG002
        """The report in the layout's order; any state takes it, up to the workload's last iteration.

        Raises:
            InvalidInput: an iteration beyond the workload's; unknown or missing names, values out of bounds.
        """
        if iteration >= compiled.layout.iterations:
            accepted = f"must be less than {compiled.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        encoded = compiled.encode(report.allocation, report.metrics, report.features)
        if not isinstance(report.upcoming, list):
            return Read(*encoded)
        given = [one.features for one in report.upcoming]
        return Read(*encoded, encode_upcoming(compiled.layout, given, iteration + 1, "/upcoming"))

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Advance each run by its report and decide, all at once."""
        batch, layout = len(pending), compiled.layout
        usual = compiled.fresh(batch)
        targets, probabilities = _goals(compiled, pending)
        state = unpack(layout, aligned(compiled.projector, [one.state.row for one in pending]))._replace(
            targets=targets,
            probabilities=probabilities,
            weights=usual.weights,
            prices=usual.prices,
        )
        reports, upcoming = [one.report for one in pending], [_upcoming(one) for one in pending]
        after = advance(
            compiled.projector,
            state,
            np.array([report.levels for report in reports], np.int16),
            np.array([report.metrics for report in reports]),
            np.array([report.features for report in reports]).reshape(batch, len(layout.features)),
        )._replace(upcoming=padded(upcoming, len(layout.features)))
        subjects = [Subject(p.run, p.iteration, p.shadow, p.state.notices, p.state.memories) for p in pending]
        answers = zip(decide(compiled, after, subjects, now), pack(after), upcoming, strict=True)
        return [
            Answered(answer.decision, Kept(row, announced, answer.notices, answer.memories), risk=answer.risk)
            for answer, row, announced in answers
        ]

    def serialise(self, state: Kept) -> msgspec.Raw:
        """Notices and the row [S] as a JSON array of numbers, null for NaN; then, if there is any, what is announced,
        an array, and what is remembered, an object.
        """
        stored = with_codes(state.row.tolist(), state.notices)
        if len(state.upcoming):
            stored.append(state.upcoming.tolist())
        if state.memories:
            stored.append(artifact.stored(state.memories))
        return msgspec.Raw(msgspec.json.encode(stored))

    def restore(self, stored: list[Any]) -> Kept:
        """What ``serialise`` gave, float64; NaN for null."""
        upcoming, memories = NOTHING, artifact.NOTHING
        if stored and isinstance(stored[-1], dict):
            *stored, remembered = stored
            memories = artifact.restored(remembered)
        if stored and isinstance(stored[-1], list):
            *stored, announced = stored
            upcoming = np.array(announced, np.float64)
        row, notices = without_codes(stored)
        return Kept(np.array(row, np.float64), upcoming, notices, memories)

    def weight(self, state: Kept) -> int:
        """Bytes of its numbers."""
        return state.row.nbytes + state.upcoming.nbytes + artifact.weight(state.memories)

    def parse_state(self, compiled: Compiled, query: Query) -> GivenState | State:
        """The last iteration of some run, or a run that has not begun."""
        return queries.parse_state(compiled, query)

    def answer_states(self, compiled: Compiled, given: Sequence[Any], now: datetime) -> list[bytes]:
        """Decisions for what ``parse_state`` gave."""
        out = [begin_with(compiled, one, None, now)[0].decision if isinstance(one, State) else b"" for one in given]
        reported = [i for i, one in enumerate(given) if not out[i]]
        if reported:
            subjects = [Subject(None, given[i].iteration) for i in reported]
            decisions = decide(compiled, states(compiled, [given[i] for i in reported]), subjects, now)
            for i, answer in zip(reported, decisions, strict=True):
                out[i] = answer.decision
        return out


def _upcoming(one: Pending) -> Array:
    """What is announced after a report: what it says itself, else what is left of what was announced before."""
    given: Array | None = one.report.upcoming
    return one.state.upcoming[1:] if given is None else given


def _goals(compiled: Compiled, pending: Sequence[Pending]) -> tuple[Array, Array]:
    """Targets and probabilities of each run, [B, M] each: its own where given, else the workload's as they stand."""
    usual = compiled.fresh(len(pending))
    targets, probabilities = usual.targets, usual.probabilities
    own = [(i, one.start) for i, one in enumerate(pending) if one.start]
    if own:
        targets, probabilities = targets.copy(), probabilities.copy()
    for i, start in own:
        for part, values in (("targets", targets), ("probabilities", probabilities)):
            for name, value in start.get(part, {}).items():
                values[i, compiled.layout.metrics.index(name)] = np.nan if value is None else value
    return targets, probabilities
