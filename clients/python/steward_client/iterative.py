"""A live run of an iterative workload: report an iteration, get the next allocation."""

import json
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Self

from .errors import StewardError, Unreachable
from .generated.models import Decision
from .live import Live, Service
from .outage import WAIT_SECONDS, Outage
from .retry import Retry

Report = dict[str, Any]
Refusals = Literal["raise", "log"]
Unknown = Literal["refuse", "omit"]
UNPROCESSABLE = 422
MOST_KEPT = 100_000
"""Reports, of about 1 kB each: as many as a workload may have iterations."""

logger = logging.getLogger("steward_client")


class Run(Live[Decision]):
    """A live run of a workload, as a context manager that starts the run and finishes it. On an exception it
    fails the run, with the exception's type and text as the reason; on `KeyboardInterrupt` it cancels it.

    ::

        with Run("http://127.0.0.1:8080", "resnet18") as run:
            allocation = run.allocation
            for iteration in range(90):
                seconds = train_one_epoch(**allocation)
                allocation = run.report(iteration, allocation, {"iteration_seconds": seconds})

    While the service is unreachable nothing is raised, and a report blocks for ``wait_seconds`` at most (later ones
    rarely): reports are kept in order, the last decision holds, and once the service is back it gets every kept
    report exactly once. An answer that isn't the service's own, such as a proxy's page, is no answer, whatever its
    status. Only the start needs the service, since there is no decision yet; it waits as ``retry`` says.
    At most ``MOST_KEPT`` reports are kept; what comes after them is not reported, which is logged once.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        workload: name of a registered workload.
        targets: targets of this run only, by metric; other metrics keep the workload's.
        probabilities: probability with which each target is to be met, by metric; None: the weights decide.
        features: features of the first iteration, if known.
        upcoming: features of the iterations after it, in order, as far as they are known.
        first_iteration: the first that will be reported; targets are for what is left from there.
        policy: name of a rule that decides in this run, such as ``hold``; None: the promoted agent or the default rule.
        retry: how long the start and the end are repeated, and how pauses grow.
        wait_seconds: how long one report may wait for its answer, above 0.
        refusals: what happens to a report that the service itself refuses (a problem document, 4xx): ``log`` logs it
            once, keeps it and those after it, and retries it with growing pauses; the last decision holds. ``raise``
            raises, and the caller may correct it.
        unknown: what happens to metrics and features that the workload does not have: ``refuse`` lets the service
            refuse the report; ``omit`` sends it, and all after it, without them, and logs their names once.

    Raises:
        ValueError: ``wait_seconds``, ``refusals`` or ``unknown`` is none of the above.
    """

    def __init__(
        self,
        client: Service,
        workload: str,
        *,
        targets: Mapping[str, float] | None = None,
        probabilities: Mapping[str, float | None] | None = None,
        features: Mapping[str, float] | None = None,
        upcoming: Sequence[Mapping[str, float]] = (),
        first_iteration: int = 0,
        policy: str | None = None,
        retry: Retry | None = None,
        wait_seconds: float = WAIT_SECONDS,
        refusals: Refusals = "log",
        unknown: Unknown = "refuse",
    ) -> None:
        if refusals not in ("raise", "log"):
            raise ValueError(f"refusals must be 'raise' or 'log', not {refusals!r}")
        if unknown not in ("refuse", "omit"):
            raise ValueError(f"unknown must be 'refuse' or 'omit', not {unknown!r}")
        request: dict[str, Any] = {"workload": workload, "targets": dict(targets or {})}
        if probabilities:
            request["probabilities"] = dict(probabilities)
        if features is not None:
            request["features"] = dict(features)
        if upcoming:
            request["upcoming"] = _announced(upcoming)
        if first_iteration:
            request["first_iteration"] = first_iteration
        if policy is not None:
            request["policy"] = policy
        retry = retry or Retry()
        self._outage = Outage(retry, wait_seconds)
        self._raises = refusals == "raise"
        self._omitted: set[tuple[str, str]] | None = set() if unknown == "omit" else None
        self._unsent: dict[int, Report] = {}
        self._refused: StewardError | None = None
        self._full = self._left_out = False
        super().__init__(client, request, _decided, retry)

    @classmethod
    def resume(
        cls,
        client: Service,
        run: str,
        *,
        retry: Retry | None = None,
        wait_seconds: float = WAIT_SECONDS,
        refusals: Refusals = "log",
        unknown: Unknown = "refuse",
    ) -> Self:
        """A run that was started before, by this launcher or by one that ended; ``iteration`` is the next to report."""
        made = cls(client, "", retry=retry, wait_seconds=wait_seconds, refusals=refusals, unknown=unknown)
        return made.take_up(run)

    @property
    def allocation(self) -> dict[str, float]:
        """The allocation of the next iteration, by resource."""
        return dict(self.decision.allocation.additional_properties)

    @property
    def iteration(self) -> int:
        """The number of the next report, counting those that are kept."""
        return max(self.decision.iteration, max(self._unsent, default=-1) + 1)

    @property
    def unsent(self) -> dict[int, Report]:
        """Reports that the service has not acknowledged yet, by iteration, in order."""
        return dict(sorted(self._unsent.copy().items()))

    @property
    def refused(self) -> StewardError | None:
        """Why the service does not take the first of the kept reports; None: it does, or was not asked."""
        return self._refused

    def report(
        self,
        iteration: int,
        allocation: Mapping[str, float],
        metrics: Mapping[str, float],
        features: Mapping[str, float] | None = None,
        upcoming: Sequence[Mapping[str, float]] | None = None,
    ) -> dict[str, float]:
        """Report what an iteration used and measured; returns the allocation of the next, or the last known.

        ``upcoming`` announces the features of the iterations after it, in order, and replaces earlier announcements;
        None leaves them in force. A report with the number of one that is kept replaces that one.

        Raises (only with ``refusals="raise"``):
            StewardError: the service refused this report, or one that was kept (a note says which): an unknown name, a
                value out of bounds, another report under that number, a number left out, a key that isn't valid.
            ValueError, TypeError: a value is no number of JSON (NaN, for instance). Where that is logged the report is
                left out, and those after it count on without it.
        """
        if self._left_out:  # the service takes no gaps
            iteration = min(iteration, self.iteration)
        try:
            self._keep(iteration, _report(allocation, metrics, features, upcoming))
        except (ValueError, TypeError):
            if self._raises:
                raise
            self._left_out = True
            logger.exception("run %s: iteration %d is not reported; the next one takes its number", self.id, iteration)
        self.deliver()
        return self.allocation

    def _keep(self, iteration: int, report: Report) -> None:
        """Keep a report until it is sent; a full store takes no more, for the service takes none that follows a gap."""
        if len(self._unsent) < MOST_KEPT or iteration in self._unsent:
            self._unsent[iteration] = report
        elif not self._full:
            self._full = True
            said = "run %s: %d reports wait to be sent; iteration %d and those after it are not reported"
            logger.error(said, self.id, MOST_KEPT, iteration)

    def deliver(self) -> float | None:
        """Send kept reports if the service is reachable; returns the seconds until the next attempt, if any are left.

        Raises (only with ``refusals="raise"``):
            StewardError: the service refused a report (a note says which).
        """
        try:
            self._outage.deliver(self._send_first)
        except StewardError as error:
            if self._raises:
                raise
            self._outage.refused()
            if str(error) != str(self._refused):
                said = "run %s: iteration %d is refused: %s; it is kept and tried again, the last decision holds"
                logger.error(said, self.id, min(self._unsent), error)  # noqa: TRY400 - where it was raised tells nothing
            self._refused = error
        return self._outage.rest if self._unsent else None

    def flush(self) -> None:
        """Send all kept reports, waiting as ``retry`` says.

        Raises:
            StewardError: the service refused a report.
            Unreachable: the service did not answer in time; what is left is kept.
        """
        while self._send_first(self._retry):
            self._outage.over()

    def _send_first(self, retry: Retry) -> bool:
        if not self._unsent:
            return False
        first = min(self._unsent)
        try:
            self._report(first, _without(self._unsent[first], self._omitted or ()), retry)
        except StewardError as error:
            if self._omits(error):
                return True
            error.add_note(f"refused: the report of iteration {first}")
            if self._raises:
                del self._unsent[first]
            raise
        del self._unsent[first]
        self._refused = None
        return True

    def _omits(self, error: StewardError) -> bool:
        """Whether the report can be sent again without what this refusal says is unknown."""
        if self._omitted is None or error.status != UNPROCESSABLE:
            return False
        unknown = error.unknown - self._omitted
        if not unknown:
            return False
        names = ", ".join(sorted(map("/".join, unknown)))
        logger.warning("run %s: %s is not sent: the workload has no such", self.id, names)
        self._omitted |= unknown
        return True

    def finish(self) -> None:
        """Send kept reports and end the run; its iterations become samples of its workload.

        Raises:
            StewardError: the service refused a report (only with ``refusals="raise"``), or the end.
            Unreachable: the service did not answer in time.
        """
        try:
            self.flush()
        except StewardError:
            if self._raises:
                raise
            logger.exception("run %s ends without iterations %s", self.id, _spans(self.unsent))
        super().finish()

    def hand_over(self) -> None:
        """Send all kept reports of a run that goes on elsewhere, as ``flush`` does; what can't be sent is logged.

        Raises:
            StewardError: the service refused a report (only with ``refusals="raise"``).
        """
        try:
            self.flush()
        except (StewardError, Unreachable) as failure:
            if self._raises and isinstance(failure, StewardError):
                raise
            logger.exception("run %s: iterations %s are not reported", self.id, _spans(self.unsent))

    def leave(self, error: BaseException | None = None) -> None:
        """Finish, fail or cancel the run. The training is over, so an unreachable service is logged and not raised."""
        try:
            super().leave(error)
        except (StewardError, Unreachable) as failure:
            if self._raises and isinstance(failure, StewardError):
                raise
            logger.exception("run %s was not ended, iterations %s not reported", self.id, _spans(self.unsent))


def _spans(numbers: Collection[int]) -> str:
    """Numbers in order, those that follow one another as from-to."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    spans = zip(firsts, lasts, strict=True)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans) or "none"


def _decided(found: Mapping[str, Any]) -> Decision:
    """A decision; not one that says nothing, or no amounts, of what to use."""
    decision = Decision.from_dict(found)
    amounts = decision.allocation.additional_properties
    if not amounts or not all(math.isfinite(amount) for amount in amounts.values()):
        raise ValueError(f"no allocation: {amounts!r:.200}")
    return decision


def _report(
    allocation: Mapping[str, float],
    metrics: Mapping[str, float],
    features: Mapping[str, float] | None,
    upcoming: Sequence[Mapping[str, float]] | None,
) -> Report:
    """A copy that can be sent: what can't would be in the way of all that comes after it."""
    report: Report = {"allocation": dict(allocation), "metrics": dict(metrics), "features": dict(features or {})}
    if upcoming is not None:
        report["upcoming"] = _announced(upcoming)
    json.dumps(report, allow_nan=False)
    return report


def _announced(upcoming: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    return [{"features": dict(features)} for features in upcoming]


def _without(report: Report, names: Collection[tuple[str, str]]) -> Report:
    """A report without these members of its parts."""
    parts = {part for part, _ in names}
    return report | {
        part: {name: value for name, value in report[part].items() if (part, name) not in names} for part in parts
    }
