"""A report that was read: the book after it, which whoever decides changes."""

from __future__ import annotations

from app.kinds.contract.drift import Residuals
from app.kinds.inference.decisions.compiled import Compiled
from app.kinds.inference.queue.advance import advance
from app.kinds.inference.queue.ledger import Ledger
from app.kinds.inference.queue.report import EncodedReport
from app.kinds.inference.queue.state import RunState


class Read:
    """See the module.

    Attributes:
        carried: whether the run's client decides by itself.
        residuals: what the report says of a drift; None without a domain model.

    Raises:
        InvalidInput: what can't be in any run.
        Contradiction: what contradicts the reports before.
    """

    __slots__ = ("_before", "_compiled", "_fresh", "_report", "carried", "residuals")

    def __init__(self, compiled: Compiled, before: RunState, report: EncodedReport) -> None:
        self._compiled, self._before, self._report = compiled, before, report
        self.carried = before.carried
        self._fresh: Ledger | None
        self._fresh, self.residuals = self._advanced()

    def ledger(self) -> Ledger:
        """The book after the report: another one each time, and most often it is asked for once."""
        fresh, self._fresh = self._fresh, None
        return self._advanced()[0] if fresh is None else fresh

    def _advanced(self) -> tuple[Ledger, Residuals | None]:
        compiled, report = self._compiled, self._report
        ledger = compiled.ledger(self._before)
        advance(ledger, report)
        return ledger, None if compiled.watch is None else compiled.watch.residuals(ledger, report)
