"""A policy that decides in this process, and reports what it did in batches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .generated import AuthenticatedClient, Client
from .generated.models import InferenceDecision
from .live import Live, http_client
from .retry import Retry

if TYPE_CHECKING:
    from app.kinds.inference.carried import Carried, Now

DEFAULT_ROLE = "default"


class Policy(NamedTuple):
    """What is needed to decide for a workload of kind ``inference``; the package ``steward`` must be installed, too.

    Attributes:
        spec: of the workload.
        artifacts: policies by role; none: a heuristic decides.
        role: the one user whose requests are decided for; None: all.
    """

    spec: Mapping[str, Any]
    artifacts: Mapping[str, bytes]
    role: str | None = None

    @classmethod
    def load(
        cls,
        client: str | Client | AuthenticatedClient,
        workload: str,
        role: str | None = None,
        *,
        retry: Retry | None = None,
    ) -> Self:
        """The champions of a workload, or the one of a role, from a service.

        Raises:
            StewardError: there is no such workload or role.
            Unreachable: the service did not answer until patience ended.
        """
        http, patient = http_client(client), retry or Retry()
        try:
            found = patient.call(http, "GET", f"/workloads/{workload}").json()
            champions = {name: one for name, one in found["champions"].items() if role in (None, name)}
            artifacts = {}
            for name, version in champions.items():
                of_role = "" if name == DEFAULT_ROLE else f"?role={name}"
                path = f"/workloads/{workload}/agents/{version}/policy{of_role}"
                artifacts[name] = patient.call(http, "GET", path).content
        finally:
            if isinstance(client, str):
                http.close()
        return cls(found["spec"], artifacts, role)

    @classmethod
    def read(cls, spec: Path, artifact: Path, role: str | None = None) -> Self:
        """A spec (JSON) and an artifact of files."""
        return cls(json.loads(spec.read_text()), {role or DEFAULT_ROLE: artifact.read_bytes()}, role)

    def carried(self, seconds: Mapping[str, Mapping[str, Sequence[float]]] | None = None) -> Carried:
        """What decides; ``seconds``: that batches are expected to take, as a carried run's first decision tells.

        Raises:
            ImportError: the package ``steward`` isn't installed.
        """
        from app.kinds.inference.carried import Carried

        return Carried(self.spec, self.artifacts, seconds, self.role)


class CarriedRun(Live[InferenceDecision]):
    """A live run that is decided here, as a context manager: it starts the run, reports it, and finishes it.

    ::

        policy = Policy.load("http://127.0.0.1:8080", "vision")
        with CarriedRun("http://127.0.0.1:8080", policy) as run:
            run.arrived("shop", clock(), "r-17")
            for start in run.decide(clock()).start:
                serve(start.server, start.variant, start.requests)
            run.finished("cpu-0", clock())
            run.flush()  # now and then, from any place that may wait

    Deciding asks nobody. What happened is kept until ``flush`` has handed it over: in numbered reports, each repeated
    as it is until it is acknowledged, so that it counts exactly once. Not to be called from several threads at once.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        policy: who decides.
        retry: how patiently calls are repeated.
    """

    def __init__(
        self, client: str | Client | AuthenticatedClient, policy: Policy, *, retry: Retry | None = None
    ) -> None:
        request = {"workload": policy.spec["name"], "carried": True}
        super().__init__(client, request, InferenceDecision.from_dict, retry)
        self._policy = policy
        self._carried: Carried | None = None
        self._unsent: deque[dict[str, Any]] = deque()

    def start(self) -> Self:
        """Start the run, once; ``with`` does it."""
        super().start()
        if self._carried is None:
            self._carried = self._policy.carried(self.decision.to_dict().get("expected"))
        return self

    def arrived(self, user: str, at: float, name: str | None = None) -> None:
        """A request came, at so many seconds since the run's start."""
        self._deciding.arrived(user, at, name)
        self._seal_full()

    def finished(self, server: str, at: float) -> None:
        """A server's batch has ended."""
        self._deciding.finished(server, at)
        self._seal_full()

    def up(self, server: str, at: float) -> None:
        """A server takes work from now on."""
        self._deciding.turned(server, "up", at)

    def down(self, server: str, at: float) -> None:
        """A server is lost; requests of its batch wait again."""
        self._deciding.turned(server, "down", at)

    def decide(self, at: float) -> Now:
        """What to start now, and which servers to turn on or off."""
        return self._deciding.decide(at)

    @property
    def wake_at(self) -> float | None:
        """When to decide again at the latest; None: at the next event."""
        return self._deciding.wake_at

    def flush(self) -> None:
        """Report all that has happened since the last time.

        Raises:
            StewardError: the service refused a report; it names the field.
            Unreachable: it did not answer until patience ended; nothing is lost, and the next call begins there.
        """
        self._seal()
        while self._unsent:
            self._report(self.iteration, self._unsent[0])
            self._unsent.popleft()

    def finish(self) -> None:
        """Report what is left, and end the run."""
        self.flush()
        super().finish()

    def fail(self) -> None:
        """Report what is left, as far as it can be, and end the run as failed."""
        try:
            self.flush()
        finally:
            super().fail()

    @property
    def _deciding(self) -> Carried:
        if self._carried is None:
            raise RuntimeError("the run has not been started: use it in a with statement, or call start()")
        return self._carried

    def _seal(self) -> None:
        if self._deciding.events:
            self._unsent.append(self._deciding.report())

    def _seal_full(self) -> None:
        if self._deciding.full:
            self._seal()
