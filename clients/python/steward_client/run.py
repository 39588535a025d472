"""A live run of an iterative workload: report an iteration, get the next allocation."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from .generated import AuthenticatedClient, Client
from .generated.models import Decision
from .live import Live
from .retry import Retry


class Run(Live[Decision]):
    """A live run of a workload, as a context manager: it starts the run, and finishes it, or fails it on an exception.

    ::

        with Run("http://127.0.0.1:8080", "resnet18") as run:
            allocation = run.allocation
            for iteration in range(90):
                seconds = train_one_epoch(**allocation)
                allocation = run.report(iteration, allocation, {"iteration_seconds": seconds})

    Reports are idempotent, so every call is repeated until it is answered or the patience of ``retry`` ends: a service
    that restarts costs time, never a report.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        workload: name of a registered workload.
        targets: targets of this run alone, by metric; the workload's hold for the rest.
        probabilities: how sure those targets are to be met, by metric; None: as the workload's weights have it.
        features: features of the first iteration, where they are known.
        upcoming: features of the iterations after it, in order, as far as they are known.
        retry: how patiently calls are repeated.
    """

    def __init__(
        self,
        client: str | Client | AuthenticatedClient,
        workload: str,
        *,
        targets: Mapping[str, float] | None = None,
        probabilities: Mapping[str, float | None] | None = None,
        features: Mapping[str, float] | None = None,
        upcoming: Sequence[Mapping[str, float]] = (),
        retry: Retry | None = None,
    ) -> None:
        request: dict[str, Any] = {"workload": workload, "targets": dict(targets or {})}
        if probabilities:
            request["probabilities"] = dict(probabilities)
        if features is not None:
            request["features"] = dict(features)
        if upcoming:
            request["upcoming"] = _announced(upcoming)
        super().__init__(client, request, Decision.from_dict, retry)

    @classmethod
    def resume(cls, client: str | Client | AuthenticatedClient, run: str, *, retry: Retry | None = None) -> Self:
        """A run that was started before, by this launcher or by one that ended; ``iteration`` is the next to report."""
        return cls(client, "", retry=retry).take_up(run)

    @property
    def allocation(self) -> dict[str, float]:
        """What the next iteration is to use, by resource."""
        return dict(self.decision.allocation.additional_properties)

    def report(
        self,
        iteration: int,
        allocation: Mapping[str, float],
        metrics: Mapping[str, float],
        features: Mapping[str, float] | None = None,
        upcoming: Sequence[Mapping[str, float]] | None = None,
    ) -> dict[str, float]:
        """Report what an iteration used and measured; the allocation for the next one.

        ``upcoming`` announces the features of the iterations after it, in order; it replaces what was announced before,
        which holds where nothing is said.

        Raises:
            StewardError: the service refused it: an unknown name, a value out of bounds, another report under that
                number, a number left out.
            Unreachable: the service did not answer until patience ended; the same report may be tried again.
        """
        report: dict[str, Any] = {"allocation": dict(allocation), "metrics": dict(metrics)}
        report["features"] = dict(features or {})
        if upcoming is not None:
            report["upcoming"] = _announced(upcoming)
        self._report(iteration, report)
        return self.allocation


def _announced(upcoming: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    return [{"features": dict(features)} for features in upcoming]
