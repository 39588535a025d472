"""Decisions that are read, or taken for a state given in full; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.database.base import utc_now
from app.database.engine import Database
from app.decisions import repository
from app.decisions.desks import desk_of
from app.errors import NotFound
from app.http.batching import MicroBatch
from app.kinds.contract.engine import Basis, Query
from app.kinds.registry import DEFAULT


def encoded(decision: dict[str, Any]) -> bytes:
    """A decision as kept, in its usual order."""
    fields = desk_of(decision.get("kind", DEFAULT)).fields
    return msgspec.json.encode({name: decision.get(name) for name in fields})


def of_run(database: Database, tenant: str, run: str, iteration: int | None) -> bytes:
    """The decision that a run's last (or ``iteration``-th) report was answered with.

    Raises:
        NotFound: no such run, or that iteration isn't reported.
    """
    with database.reading() as session:
        found = repository.of_run(session, tenant, run, iteration)
    if found is None:
        raise NotFound(f"no run {run!r}; start one with POST /runs")
    if found.decision is None:
        raise NotFound(
            f"iteration {iteration} of run {run} isn't reported; the next one to report is {found.following}"
        )
    return encoded(found.decision)


class StateDecisions:
    """Decides for states given in full; those that arrive together are decided together."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._batch: MicroBatch[Basis, Any] = MicroBatch(self._evaluate)

    async def decide(self, basis: Basis, query: Query) -> bytes:
        """The decision for the state that ``query`` gives; what it may give is its kind's matter.

        Raises:
            Invalid: a part is missing, unknown, twice there, or no number; or the kind takes no such query.
            InvalidInput: the state doesn't fit the workload.
        """
        return await self._batch.submit(basis, desk_of(basis.serving.spec.kind).given(basis, query))

    def _evaluate(self, basis: Basis, items: Sequence[Any]) -> list[bytes]:
        return desk_of(basis.serving.spec.kind).answer_given(basis, items, self._clock())
