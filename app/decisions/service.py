"""Decisions that are read, or taken for a state given in full; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.database.base import utc_now
from app.database.engine import Database
from app.decisions import repository
from app.errors import NotFound
from app.http.batching import MicroBatch
from app.kinds.contract.decision import ADDED
from app.kinds.contract.engine import CompiledWorkload, Query
from app.kinds.registry import DEFAULT, KINDS


def encoded(decision: dict[str, Any]) -> bytes:
    """A decision as kept, in its usual order."""
    kind = str(decision.get("kind", DEFAULT))
    known = {**decision, "kind": kind}
    own = {name: known.get(name) for name in KINDS[kind].decision.model_fields if name not in ADDED}
    return msgspec.json.encode(own | {name: known[name] for name in ADDED if known.get(name)})


def of_run(database: Database, tenant: str, run: str, iteration: int | None) -> bytes:
    """The decision that a run's last (or ``iteration``-th) report was answered with.

    Raises:
        NotFound: no such run, or that iteration isn't reported.
    """
    with database.reading() as session:
        found = repository.of_run(session, tenant, run, iteration)
    if found is None:
        raise NotFound(f"no run {run!r}; start one with POST /runs")
    if found.decision is None and iteration is not None and iteration < found.kept_from:
        raise NotFound(f"iteration {iteration} of run {run} is not kept; the first is {found.kept_from}")
    if found.decision is None:
        raise NotFound(
            f"iteration {iteration} of run {run} isn't reported; the next one to report is {found.following}"
        )
    return encoded(found.decision)


class StateDecisions:
    """Decides for states given in full; those that arrive together are decided together."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._batch: MicroBatch[CompiledWorkload, Any] = MicroBatch(self._evaluate)

    async def decide(self, compiled: CompiledWorkload, query: Query) -> bytes:
        """The decision for the state that ``query`` gives; what it may give is its kind's matter.

        Raises:
            InvalidInput: the state doesn't fit the workload, or its kind takes no such query.
        """
        return await self._batch.submit(
            compiled, KINDS[compiled.snapshot.spec.kind].engine.parse_state(compiled, query)
        )

    def _evaluate(self, compiled: CompiledWorkload, items: Sequence[Any]) -> list[bytes]:
        return KINDS[compiled.snapshot.spec.kind].engine.answer_states(compiled, items, self._clock())
