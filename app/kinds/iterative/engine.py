"""Serving of kind ``iterative``: allocations of runs that consist of iterations.

Shapes: B runs, R resources, M metrics, F features, U announced iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from app.kinds.contract.caps import Cap
from app.kinds.contract.engine import Pending, Query, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.engine import Choices, DecidedBy, Engine, KindDecision, RunMemory, Serving
from app.kinds.fields import decoded
from app.kinds.iterative import decide
from app.kinds.iterative import query as queries
from app.kinds.iterative.announced import encode_upcoming, pad_announced
from app.kinds.iterative.compiled import NONE, Compiled
from app.kinds.iterative.contingencies import (
    Segment,
    advance_in_segments,
    are_offered,
    checked_change,
    encode_segments,
)
from app.kinds.iterative.decide import Batch
from app.kinds.iterative.heuristics import HEURISTICS, WITHOUT_MODEL
from app.kinds.iterative.policies import check
from app.kinds.iterative.query import GivenState
from app.kinds.iterative.reasons import HISTORY
from app.kinds.iterative.report import LARGEST_BYTES, Decision, IterationReport, IterationRunStart
from app.kinds.iterative.requests import Request, RequestedAllocation, after_report, checked_request
from app.kinds.iterative.state import RunState, State, stack_rows, unpack
from app.policies.artifact import Artifact, Memory

Array = NDArray[np.float64]
NOTHING: Array = np.zeros((0, 0))
OPTIONAL = ("upcoming", "change_seconds", "requested")
REQUEST_BYTES = 1000  # of one in memory
FEW_ANNOUNCED = 100  # reading and weighing them takes some 3 ms


class CheckedReport(msgspec.Struct, frozen=True):
    """A report in the layout's order of names.

    Attributes:
        levels: allocation of each resource, in grid steps above the minimum.
        metrics: measured values, in the metrics' units.
        features: features of the iteration.
        upcoming: features of the U iterations after it, [U, F]; None: the earlier announcement still holds.
        segments: parts of the iteration, if its allocation changed before its end.
        change_seconds: seconds of the iteration in which the run stood still; None: not measured.
        requested: what was requested and is not there; None: nothing.
    """

    levels: list[int]
    metrics: list[float]
    features: list[float]
    upcoming: Array | None = None
    segments: Sequence[Segment] = ()
    change_seconds: float | None = None
    requested: Request | None = None


class IterativeServing(Serving):
    """Serving of iterative runs: a report advances the state (``RunState``) of its run, and all runs of a batch are
    decided together."""

    report = IterationReport
    metered = True
    failed_shadow: ClassVar[Mapping[str, Any]] = {"allocation": None, "agrees": False, "gain": None}

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Compile a snapshot: projector, heuristic and cached texts."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Return the names of all heuristics; without a domain model, of those that need none."""
        return tuple(HEURISTICS if compiled.projector.table.informed else WITHOUT_MODEL)

    def decode(self, body: bytes) -> IterationReport:
        """Decode a report from JSON, without its field ``kind``, which the run has, and without empty ``segments``.

        Raises:
            InvalidInput: ``body`` isn't a valid report, or is longer than ``LARGEST_BYTES``.
        """
        if len(body) > LARGEST_BYTES:
            raise invalid("", f"must have at most {LARGEST_BYTES:,} bytes", len(body))
        report = decoded(body, IterationReport)
        plain = report.upcoming is not None and (report.segments is UNSET or bool(report.segments))
        if report.kind is not UNSET or None in (report.change_seconds, report.requested) or not plain:
            given = {name: UNSET if (value := getattr(report, name)) is None else value for name in OPTIONAL}
            report = msgspec.structs.replace(report, kind=UNSET, segments=report.segments or UNSET, **given)
        return report

    def begin(self, compiled: Compiled, start: IterationRunStart, now: datetime) -> KindDecision:
        """Return the first decision of a run: the model's best allocation, or the spec's initial one without a model.

        Raises:
            InvalidInput: ``start`` has an iteration, targets, probabilities or features that don't fit the workload.
        """
        return self.begin_within(compiled, start, (), now)

    def begin_within(
        self, compiled: Compiled, start: IterationRunStart, caps: Sequence[Cap], now: datetime
    ) -> KindDecision:
        """Return the first decision: the model's best allocation within ``caps`` if there is one, else the one that
        exceeds them least; the spec's initial one without a model. Raises InvalidInput if ``start`` doesn't fit the
        workload."""
        state = queries.beginning(
            compiled,
            start.targets,
            start.features,
            start.probabilities,
            upcoming=start.upcoming,
            first=start.first_iteration,
        )
        return decide.begin(compiled, state, caps=caps)

    def takes_long(self, compiled: Compiled, state: RunState, report: IterationReport) -> bool:
        """Return whether a thread should decide on the report, as it takes milliseconds: decisions may offer
        contingencies, or more than ``FEW_ANNOUNCED`` upcoming iterations are announced."""
        announced = report.upcoming if isinstance(report.upcoming, list) else state.upcoming
        return len(announced) > FEW_ANNOUNCED or are_offered(compiled.projector)

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: IterationReport) -> CheckedReport:
        """Return the report in the layout's order, whatever the run's state.

        Raises:
            InvalidInput: the iteration is beyond the last, a name is unknown or missing, or a value out of bounds.
        """
        if iteration >= compiled.layout.iterations:
            accepted = f"must be less than {compiled.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        encoded = compiled.encode(report.allocation, report.metrics, report.features)
        upcoming = None
        if isinstance(report.upcoming, list):
            announced = [one.features for one in report.upcoming]
            upcoming = encode_upcoming(compiled.layout, announced, iteration + 1, "/upcoming")
        given = encode_segments(compiled.layout, report.segments, *encoded[:2]) if report.segments else ()
        paused, request = checked_change(compiled.layout, report, encoded[1]), report.requested
        requested = None
        if isinstance(request, RequestedAllocation):
            requested = checked_request(compiled.layout, request, encoded[0])
        return CheckedReport(*encoded, upcoming, given, paused, requested)

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> Batch:
        """Return all runs with their states advanced by their reports, as input of policies."""
        before = [one.state.state for one in pending]
        if isinstance(before[0], GivenState):  # from queries, which come by themselves
            state, count = queries.states(compiled, before), len(before)
            return decide.make_batch(compiled, state, [NONE] * count, [NOTHING] * count, live=False)
        upcoming = [_upcoming(one) for one in pending]
        state, changes = _advance(compiled, pending, upcoming)
        notices, caps = [one.notices for one in before], [one.caps for one in pending]
        requests = [_requests(compiled, one) for one in pending]
        return decide.make_batch(compiled, state, notices, upcoming, changes, caps=caps, requests=requests)

    def agent(self, compiled: Compiled, made: Artifact) -> Artifact:
        """Return the artifact; raises IncompatibleArtifact if it doesn't fit the layout."""
        check(made, compiled.layout)
        return made

    def choose(
        self,
        compiled: Compiled,
        batch: Batch,
        agent: Artifact | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """Choose an action for each run by ``agent``, or by the heuristic if None, and apply the guard."""
        return decide.choose(compiled, batch, agent, memory)

    def write(self, compiled: Compiled, batch: Batch, choices: Choices, decided_by: DecidedBy) -> list[KindDecision]:
        """Return one decision per run: allocation, predicted metrics, and probabilities of meeting targets."""
        return decide.write(compiled, batch, choices, decided_by)

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """Return a decision that keeps the run's allocation; ``failure`` says in words why no policy decided."""
        given = one.state.state
        if isinstance(given, GivenState):
            return decide.hold(compiled, queries.states(compiled, [given]), NOTHING, 0, failure)
        upcoming = _upcoming(one)
        state, [changes] = _advance(compiled, [one], [upcoming])
        return decide.hold(compiled, state, upcoming, changes, failure, one.caps, _requests(compiled, one))

    def compare(self, compiled: Compiled, batch: Batch, row: int, done: Any, other: Choices) -> dict[str, Any]:
        """Compare run ``row``'s action ``done`` with a shadow's (agent beside the champion, choices ``other``). Return
        the shadow's ``allocation`` (units by resource), whether it ``agrees``, and its ``gain`` in expected return."""
        return decide.compare(compiled, batch, row, done, other)

    def query(self, compiled: Compiled, query: Query) -> Pending | KindDecision:
        """Parse a run's last iteration from query parameters; without one, return the first decision of a run.

        Raises:
            InvalidInput: a part is missing, unknown or invalid, or the state doesn't fit the workload.
        """
        given = queries.parse_state(compiled, query)
        if isinstance(given, State):
            return decide.begin(compiled, given, live=False)
        return Pending(None, given.iteration, RunMemory(given), None, {}, None)

    def pack(self, state: RunState) -> list[Any]:
        """Return the state for JSON: row of numbers, notices, announced features, ``belief``, ``changes``, and
        ``requests`` if there are any."""
        found = [state.row.tolist(), sorted(state.notices), state.upcoming.tolist(), state.belief, state.changes]
        return [*found, [msgspec.to_builtins(one) for one in state.requests]] if state.requests else found

    def unpack(self, stored: list[Any]) -> RunState:
        """Return the state from lists that ``pack`` returned; None becomes NaN."""
        row, notices, upcoming, belief, changes, *more = stored
        announced = np.array(upcoming, np.float64) if upcoming else NOTHING
        requests = msgspec.convert(more[0], tuple[Request, ...]) if more else ()
        return RunState(np.array(row, np.float64), announced, frozenset(notices), belief, changes, requests)

    def weight(self, state: RunState) -> int:
        """Return the size of the state's arrays and requests in bytes."""
        return state.row.nbytes + state.upcoming.nbytes + REQUEST_BYTES * len(state.requests)


ENGINE = Engine("iterative", Decision, IterativeServing())


def _advance(compiled: Compiled, pending: Sequence[Pending], upcoming: Sequence[Array]) -> tuple[State, Sequence[int]]:
    """Return the B runs after their reports, and bits of each one's last reports, set where the allocation changed; a
    first report changes nothing."""
    batch, layout = len(pending), compiled.layout
    usual, reports = compiled.fresh(batch), [one.report for one in pending]
    targets, probabilities = _goals(compiled, pending)
    rows = [compiled.row(one.state.state) for one in pending]
    state = unpack(layout, stack_rows(compiled.projector, rows))._replace(
        targets=targets,
        probabilities=probabilities,
        weights=usual.weights,
        prices=usual.prices,
    )
    levels = np.array([report.levels for report in reports], np.int16)
    since = [(one.start or {}).get("first_iteration", 0) for one in pending]
    moved = (levels != state.levels).any(axis=1) & (state.iteration > since)
    changes = [(one.state.state.changes << 1 | bit) & HISTORY for one, bit in zip(pending, moved.tolist(), strict=True)]
    advanced = advance_in_segments(
        compiled.projector,
        state,
        levels,
        np.array([report.metrics for report in reports]),
        np.array([report.features for report in reports]).reshape(batch, len(layout.features)),
        [report.segments for report in reports],
        np.array([report.change_seconds for report in reports], np.float64),
    )
    return advanced._replace(upcoming=pad_announced(upcoming, len(layout.features))), changes


def _requests(compiled: Compiled, one: Pending) -> tuple[Sequence[Request], str]:
    """Return a run's requests after a report, and the state that the report gave to one of them; empty: to none."""
    before, report = one.state.state.requests, one.report
    if not before and report.requested is None:
        return (), ""
    seconds = report.metrics[compiled.layout.seconds]
    return after_report(before, report.requested, report.levels, one.iteration + 1, seconds)


def _upcoming(one: Pending) -> Array:
    """Return the announced features after a report, [U, F]: the report's, else the rest of those announced before."""
    given: Array | None = one.report.upcoming
    kept: Array = one.state.state.upcoming[1:]
    return kept if given is None else given


def _goals(compiled: Compiled, pending: Sequence[Pending]) -> tuple[Array, Array]:
    """Return targets and required probabilities, [B, M] each: the runs' own, else the workload's; NaN: none."""
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
