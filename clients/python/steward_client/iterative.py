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
from .reaction import Apply, Contingency, Reaction
from .retry import Retry

Report = dict[str, Any]
Refusals = Literal["raise", "log"]
Unknown = Literal["refuse", "omit"]
UNPROCESSABLE = 422
OMISSIBLE = frozenset({"requested"})
"""Members of a report that older services don't have, and without which it says the same of what was measured."""
MOST_KEPT = 100_000
"""Most stored reports, of about 1 kB each: as many as a workload may have iterations."""

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
    report exactly once. A response that isn't the service's own, such as a proxy's page, counts as none, whatever its
    status. Only the start needs the service, since there is no decision yet; it waits as ``retry`` says.
    At most 100,000 reports are kept; later ones are not reported, which is logged once.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        workload: name of a registered workload.
        targets: targets of this run only, by metric; other metrics keep the workload's.
        probabilities: probability (0 to 1) with which each target must be met, by metric; None: the weights decide.
        features: features of the first iteration, if known.
        upcoming: features of the iterations after it, in order, as far as they are known.
        first_iteration: number of the first reported iteration; targets are for the iterations from it on.
        policy: name of a rule that decides in this run, such as ``hold``; None: the promoted agent or the default rule.
        caps: limits of this run: ``cost``, in the currency of prices, and ``seconds``; ``stop`` tells when to end.
        advise: whether decisions are recommendations that the caller doesn't apply; ``savings`` of the finished run
            says what they would have saved.
        retry: how start and end are repeated, and how pauses grow; None: by the defaults of ``Retry``.
        wait_seconds: longest time in seconds for which a report blocks, above 0.
        refusals: what happens to a report that the service itself refuses (a problem document, 4xx): ``log`` logs it
            once, keeps it and those after it, and retries it with growing pauses; the last decision holds. ``raise``
            raises, and the caller may correct it.
        unknown: what happens to metrics and features that the workload does not have: ``refuse`` lets the service
            refuse the report; ``omit`` sends it, and all after it, without them, and logs their names once.

    Raises:
        ValueError: ``wait_seconds``, ``refusals`` or ``unknown`` has another value.
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
        advise: bool = False,
        caps: Mapping[str, float] | None = None,
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
            request["upcoming"] = _upcoming_features(upcoming)
        if first_iteration:
            request["first_iteration"] = first_iteration
        if policy is not None:
            request["policy"] = policy
        if advise:
            request["mode"] = "advise"
        if caps:
            request["caps"] = dict(caps)
        retry = retry or Retry()
        self._outage = Outage(retry, wait_seconds)
        self._raises = refusals == "raise"
        self._omitted: set[tuple[str, str]] | None = set() if unknown == "omit" else None
        self._later = set[str]()  # what the service is too old for
        self._unsent: dict[int, Report] = {}
        self._refused: StewardError | None = None
        self._full = self._left_out = False
        super().__init__(client, request, _parse_decision, retry)

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
        """Continue a run that was started before; ``iteration`` is the next to report. Options as in ``Run``.

        Raises:
            StewardError: there is no such run.
            Unreachable: the service didn't respond in time.
        """
        result = cls(client, "", retry=retry, wait_seconds=wait_seconds, refusals=refusals, unknown=unknown)
        return result.take_up(run)

    @property
    def allocation(self) -> dict[str, float]:
        """The allocation of the next iteration: amounts by resource, in the spec's units."""
        return dict(self.decision.allocation.additional_properties)

    @property
    def contingencies(self) -> list[Contingency]:
        """Allocations if the next iteration takes longer than expected, by ascending time; empty while the decision on
        the last one isn't known."""
        return contingencies_of(self.decision) if self.decision.iteration == self.iteration else []

    @property
    def stop(self) -> bool:
        """Whether the work is to be stopped, because a cap is reached; ``decision.reason`` says which. ``cancel`` the
        run then, or raise ``CapReached``: its outcome is ``cap_reached``."""
        return self.decision.stop is True

    def react(self, apply: Apply) -> Reaction:
        """Context manager around the next iteration that applies the decision's contingencies by ``apply``, in a
        thread, and records the segments for the report; the service isn't needed meanwhile."""
        return Reaction(self.allocation, self.contingencies, apply)

    @property
    def iteration(self) -> int:
        """Number of the next report, after the stored ones."""
        return max(self.decision.iteration, max(self._unsent, default=-1) + 1)

    @property
    def unsent(self) -> dict[int, Report]:
        """Reports that the service has not acknowledged yet, by iteration, in order."""
        return dict(sorted(self._unsent.copy().items()))

    @property
    def refused(self) -> StewardError | None:
        """Why the service refuses the first stored report; None: it doesn't, or hasn't been asked."""
        return self._refused

    def report(
        self,
        iteration: int,
        allocation: Mapping[str, float],
        metrics: Mapping[str, float],
        features: Mapping[str, float] | None = None,
        upcoming: Sequence[Mapping[str, float]] | None = None,
        segments: Sequence[Mapping[str, Any]] = (),
        change_seconds: float | None = None,
        requested: Mapping[str, Any] | None = None,
    ) -> dict[str, float]:
        """Report an iteration's allocation, metrics and features; returns the next allocation, or the last known.

        ``upcoming`` announces the features of the iterations after it, in order, and replaces earlier announcements;
        None leaves them in force. ``segments`` are the parts of an iteration whose allocation changed before its end
        (``react``), the last of which is at ``allocation``. In ``change_seconds`` of the iteration's seconds it stood
        still, or repeated what was lost, because of a change or a restart; None: that wasn't measured. ``requested``
        says what was requested and isn't there: its ``allocation``, ``state`` (``requested``, ``refused`` or
        ``timed_out``), ``since`` (RFC 3339) and ``reason``. A report with the number of a stored report replaces it.

        Raises (only with ``refusals="raise"``):
            StewardError: the service refused this report or a stored one (a note says which), for an unknown name, a
                value out of bounds, a number that is skipped or used by another report, or an invalid key.
            ValueError, TypeError: a value is no JSON number, such as NaN. With ``refusals="log"`` the report is left
                out, and the next one takes its number.
        """
        if self._left_out:  # the service takes no gaps
            iteration = min(iteration, self.iteration)
        try:
            self._keep(iteration, _report(allocation, metrics, features, upcoming, segments, change_seconds, requested))
        except (ValueError, TypeError):
            if self._raises:
                raise
            self._left_out = True
            logger.exception("run %s: iteration %d is not reported; the next one takes its number", self.id, iteration)
        self.deliver()
        return self.allocation

    def _keep(self, iteration: int, report: Report) -> None:
        """Store a report until it is sent; a full store takes no more, because the service accepts no gaps."""
        if len(self._unsent) < MOST_KEPT or iteration in self._unsent:
            self._unsent[iteration] = report
        elif not self._full:
            self._full = True
            text = "run %s: %d reports wait to be sent; iteration %d and those after it are not reported"
            logger.error(text, self.id, MOST_KEPT, iteration)

    def deliver(self) -> float | None:
        """Send stored reports if the service is reachable; returns the seconds until the next attempt, None: all sent.

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
                text = "run %s: iteration %d is refused: %s; it is kept and tried again, the last decision holds"
                logger.error(text, self.id, min(self._unsent), error)  # noqa: TRY400 - where it was raised tells nothing
            self._refused = error
        return self._outage.rest if self._unsent else None

    def flush(self) -> None:
        """Send all kept reports, waiting as ``retry`` says.

        Raises:
            StewardError: the service refused a report.
            Unreachable: the service didn't respond in time; unsent reports stay stored.
        """
        while self._send_first(self._retry):
            self._outage.over()

    def _send_first(self, retry: Retry) -> bool:
        if not self._unsent:
            return False
        first = min(self._unsent)
        known = {name: part for name, part in self._unsent[first].items() if name not in self._later}
        try:
            self._report(first, _without(known, self._omitted or ()), retry)
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
        """Whether a refusal names unknown metrics, features or members that can be omitted; they are from now on."""
        if error.status != UNPROCESSABLE:
            return False
        if later := (error.unknown_members & OMISSIBLE) - self._later:
            logger.warning("run %s: %s is not sent: the service's version has no such", self.id, ", ".join(later))
            self._later |= later
            return True
        if self._omitted is None:
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
        """Send all stored reports of a run that isn't ended here; an unreachable service or a refusal is logged.

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
        """Finish the run, or fail or cancel it with an ``error``, and close it. An unreachable service is logged, not
        raised.

        Raises:
            StewardError: the service refused a report or the end (only with ``refusals="raise"``).
        """
        try:
            super().leave(error)
        except (StewardError, Unreachable) as failure:
            if self._raises and isinstance(failure, StewardError):
                raise
            logger.exception("run %s was not ended, iterations %s not reported", self.id, _spans(self.unsent))


def _spans(numbers: Collection[int]) -> str:
    """Ascending numbers in words, such as ``3-7, 9``; ``none`` if there are none."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    spans = zip(firsts, lasts, strict=True)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans) or "none"


def _parse_decision(result: Mapping[str, Any]) -> Decision:
    """Parse a decision; raises ValueError if it has no allocation or a value that isn't finite."""
    decision = Decision.from_dict(result)
    amounts = decision.allocation.additional_properties
    if not amounts or not all(math.isfinite(amount) for amount in amounts.values()):
        raise ValueError(f"no allocation: {amounts!r:.200}")
    return decision


def contingencies_of(decision: Decision) -> list[Contingency]:
    """The contingencies of a decision, by ascending time."""
    contingencies = decision.contingencies or []
    return [
        Contingency(one.after_seconds, dict(one.allocation.additional_properties), one.reason.text)
        for one in contingencies
    ]


def _report(
    allocation: Mapping[str, float],
    metrics: Mapping[str, float],
    features: Mapping[str, float] | None,
    upcoming: Sequence[Mapping[str, float]] | None,
    segments: Sequence[Mapping[str, Any]],
    change_seconds: float | None,
    requested: Mapping[str, Any] | None,
) -> Report:
    """The report as JSON values; raises ValueError or TypeError for values that JSON can't represent, such as NaN."""
    report: Report = {"allocation": dict(allocation), "metrics": dict(metrics), "features": dict(features or {})}
    if upcoming is not None:
        report["upcoming"] = _upcoming_features(upcoming)
    if segments:
        report["segments"] = [dict(segment) for segment in segments]
    if change_seconds is not None:
        report["change_seconds"] = change_seconds
    if requested is not None:
        report["requested"] = dict(requested)
    json.dumps(report, allow_nan=False)
    return report


def _upcoming_features(upcoming: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    return [{"features": dict(features)} for features in upcoming]


def _without(report: Report, names: Collection[tuple[str, str]]) -> Report:
    """A report without these members, given as pairs of part and name."""
    parts = {part for part, _ in names}
    return report | {
        part: {name: value for name, value in report[part].items() if (part, name) not in names} for part in parts
    }
