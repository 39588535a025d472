"""A live run of a workflow workload: report waiting and running tasks, get the tasks to start and their nodes."""

from typing import Any, Self

from .generated.models import QueueDecision
from .live import Live, Service
from .retry import Retry


class QueueRun(Live[QueueDecision]):
    """A live queue, as a context manager that starts the run and finishes it, or fails it on an exception.

    ::

        with QueueRun("http://127.0.0.1:8080", "cluster") as run:
            decision = run.report(now, queued=[{"id": "align", "processors": 4, "estimate": 600}])
            for placement in decision.placements:
                launch(placement.task, placement.node)
            run.report(now + 30, running=[{"id": "align", "node": "cpu-0", "start": now}])

    After the first report, list only changes. Reports are idempotent, so every call is repeated until it is answered or
    the time of ``retry`` is up.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        workload: name of a registered workload of kind ``workflow``.
        retry: how calls are repeated; None: by the defaults of ``Retry``.
    """

    def __init__(self, client: Service, workload: str, *, retry: Retry | None = None) -> None:
        super().__init__(client, {"workload": workload}, QueueDecision.from_dict, retry)

    @classmethod
    def resume(cls, client: Service, run: str, *, retry: Retry | None = None) -> Self:
        """Continue a run started before; raises StewardError if there is none, Unreachable if nothing responds."""
        return cls(client, "", retry=retry).take_up(run)

    def report(self, now: float, **changes: Any) -> QueueDecision:
        """Report changes up to ``now`` (seconds): lists ``queued``, ``running``, ``finished``, ``nodes`` of the API.

        Raises:
            StewardError: the service refused it; it names the field.
            Unreachable: the service did not answer in time; the same report may be tried again.
        """
        return self._report(self.iteration, {"now": now, "delta": self.iteration > 0, **changes})
