"""Policies of inference workloads that decide in this process, and runs that report such decisions in batches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import httpx

from .answers import artifact, document
from .display import choose_service
from .errors import StewardError
from .generated.models import InferenceDecision
from .journal import Journal, JournalError
from .live import Live, Service, open_http
from .outage import WAIT_SECONDS, Outage
from .retry import CONFLICT, Retry

if TYPE_CHECKING:
    from app.kinds.inference.carried import Carried, Now, StartNow

DEFAULT_ROLE = "default"
BEGUN, RUN = "begun", "run"
RECENT = 16_384


class Policy(NamedTuple):
    """A policy for a workload of kind ``inference``; deciding needs the package ``steward``.

    Attributes:
        spec: the workload's spec.
        artifacts: policy artifacts by role; empty: a heuristic decides.
        role: the only user whose requests are decided; None: all.
    """

    spec: Mapping[str, Any]
    artifacts: Mapping[str, bytes]
    role: str | None = None

    @classmethod
    def load(
        cls,
        client: Service,
        workload: str,
        role: str | None = None,
        *,
        retry: Retry | None = None,
    ) -> Self:
        """Fetch a workload's spec and its champions' policies, or only that of ``role``, from a service.

        Raises:
            StewardError: there is no such workload or role.
            Unreachable: the service didn't respond in time.
        """
        patient = retry or Retry()
        with open_http(client) as http:
            result = patient.call(http, "GET", f"/workloads/{workload}", _parse_workload)
            champions = {name: one for name, one in result["champions"].items() if role in (None, name)}
            artifacts = {}
            for name, version in champions.items():
                of_role = "" if name == DEFAULT_ROLE else f"?role={name}"
                path = f"/workloads/{workload}/agents/{version}/policy{of_role}"
                artifacts[name] = patient.call(http, "GET", path, artifact)
        return cls(result["spec"], artifacts, role)

    @classmethod
    def read(cls, spec: Path, artifact: Path, role: str | None = None) -> Self:
        """Read a spec (JSON) and an artifact, for ``role`` or all users, from files; raises OSError if one can't be
        read, and ValueError if the spec is no JSON."""
        return cls(json.loads(spec.read_text()), {role or DEFAULT_ROLE: artifact.read_bytes()}, role)

    def carried(self, seconds: Mapping[str, Mapping[str, Sequence[float]]] | None = None) -> Carried:
        """Return an object that decides by this policy in this process; ``seconds``: expected seconds of a batch, by
        server class and variant, one number for each batch size, as in a run's first decision (None: unknown).

        Raises:
            ImportError: the package ``steward`` isn't installed.
            IncompatibleArtifact, ValidationError, InvalidInput: the policy's artifacts, spec or role can't be used.
            KeyError: ``seconds`` lacks a server class or variant.
        """
        from app.kinds.inference.carried import Carried

        return Carried(self.spec, self.artifacts, seconds, self.role)


class CarriedRun(Live[InferenceDecision]):
    """A live run whose decisions are made in this process; a context manager that starts, reports and finishes it.

    ::

        policy = Policy.load("http://127.0.0.1:8080", "vision")
        with CarriedRun("http://127.0.0.1:8080", policy) as run:
            run.arrived("shop", clock(), "r-17")
            for start in run.decide(clock()).start:
                serve(start.server, start.variant, start.requests)
            run.finished("cpu-0", clock())
            run.report()  # now and then

    Decisions are local. Events are stored until ``report`` or ``flush`` has sent them, in numbered reports that are
    repeated unchanged until they are acknowledged, so each event counts exactly once. While the service is unreachable
    ``report`` raises nothing and blocks for ``wait_seconds`` at most, later rarely; ``flush`` waits as ``retry`` says.
    Not thread-safe.

    With a ``journal`` a run outlives its process: a new ``CarriedRun`` on the same file continues the run where it was
    (``now``, ``working``), and sends the unacknowledged events, each once. Names of requests must then be unique: a
    name among the last 16,384 is ignored, so a launcher may report a request again if it is not sure. The journal
    is deleted when the run ends.

    Args:
        client: the service's address, or a generated client (one with a key, for example).
        policy: the policy that decides.
        retry: how calls are repeated; None: by the defaults of ``Retry``.
        journal: a file on a local disk, used by one process at a time; None: none.
        wait_seconds: longest time in seconds for which ``report`` blocks, above 0.

    Raises:
        JournalError: the journal can't be used.
        ValueError: ``wait_seconds`` isn't above 0.
    """

    def __init__(
        self,
        client: Service,
        policy: Policy,
        *,
        retry: Retry | None = None,
        journal: Path | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        retry = retry or Retry()
        self._outage = Outage(retry, wait_seconds)
        self._journal = None if journal is None else Journal(journal)
        request = {"workload": policy.spec["name"], "carried": True}
        super().__init__(client, request, InferenceDecision.from_dict, retry)
        self._policy = policy
        self._carried: Carried | None = None
        self._unsent: deque[dict[str, Any]] = deque()
        self._names: dict[str, None] = {}  # in order
        self._sent_expected: Any = None

    def start(self) -> Self:
        """Start the run, once, or continue the journal's; ``with`` does so.

        Raises:
            JournalError: the journal belongs to another workload, or its run has ended or is reported by another
                process.
            OSError: the journal can't be written.
            ImportError: the package ``steward`` isn't installed.
            IncompatibleArtifact, ValidationError, InvalidInput: the policy's artifacts, spec or role can't be used.
            StewardError, Unreachable: the run can't be started or continued.
        """
        if self._carried is not None:
            return self
        if self._journal is None:
            super().start()
            self._carried = self._policy.carried(self._expected())
        else:
            try:
                self._begin(self._journal)
            except BaseException:
                self.close()
                raise
        return self

    def _expected(self) -> Any:
        return self.decision.to_dict().get("expected")

    def _begin(self, journal: Journal) -> None:
        """Start the run of the journal's first line, or restore the run, and queue reports that the service lacks.

        Raises:
            JournalError: the journal is another workload's, or its run has ended or other reports.
            StewardError, Unreachable: the service refused the run, or didn't respond in time.
        """
        if not journal.lines:
            journal.append(self._start_record())
        begun = (journal.lines or [self._start_record()])[0].get(BEGUN)
        if not begun or begun["workload"] != self.workload:
            raise JournalError(f"{journal.path}: no journal of workload {self.workload!r}: {begun}")
        self._key = begun["key"]
        if len(journal.lines) < 2:
            super().start()
            self._sent_expected = self._expected()
            known = self._run_record(None)
            journal.append({RUN: known})
        else:
            known = journal.lines[1][RUN]
        self._sent_expected, self._names = known["expected"], dict.fromkeys(known["names"])
        self._carried = self._restore(journal, known)
        self._carried.keep = journal.append

    def _restore(self, journal: Journal, known: Mapping[str, Any]) -> Carried:
        carried = self._policy.carried(known["expected"])
        if known["state"] is not None:
            carried.restore(known["state"])
        reports = []
        for line in journal.lines[2:]:
            sealed = carried.replay(line)
            reports += [] if sealed is None else [sealed]
            self._remember(line.get("arrived", {}).get("id"))
        journal.lines.clear()
        if not self.id:
            self._reconcile(journal, known, reports)
        return carried

    def _reconcile(self, journal: Journal, known: Mapping[str, Any], reports: Sequence[dict[str, Any]]) -> None:
        """Compare the journal's reports with the service's, and queue those that it hasn't acknowledged.

        Raises:
            JournalError: the run has ended, or has other reports.
        """
        run = self._read_run(known["id"])
        if run.state != "running":
            raise JournalError(f"{journal.path}: run {known['id']} is {run.state}; delete the journal")
        self._take_up(run)
        done = self.iteration - known["reports"]
        if not 0 <= done <= len(reports) or not self._is_stored(known["reports"] + done - 1, reports[:done]):
            raise JournalError(
                f"{journal.path}: run {known['id']} has {self.iteration} reports, and they are not those of the "
                f"journal, which tells of {known['reports'] + len(reports)}: somebody else reports it"
            )
        self._unsent.extend(reports[done:])

    def _is_stored(self, number: int, reports: Sequence[dict[str, Any]]) -> bool:
        """Whether the last of these reports is stored under this number, tested by repeating it; True for none."""
        try:
            return not reports or bool(self._call("PUT", f"/runs/{self.id}/iterations/{number}", document, reports[-1]))
        except StewardError as error:
            if error.status != CONFLICT:
                raise
            return False

    def _remember(self, name: str | None) -> None:
        """Store a request's name (None: none) among the last 16,384 (``RECENT``)."""
        if name is not None:
            self._names[name] = None
            if len(self._names) > RECENT:
                del self._names[next(iter(self._names))]

    @property
    def now(self) -> float:
        """Time of the last event or decision, in seconds since the run's start."""
        return self._deciding.now

    @property
    def working(self) -> Mapping[str, StartNow]:
        """Running batches by server; in a continued run, report each as ``finished`` or ``down``."""
        return self._deciding.working()

    def arrived(self, user: str, at: float, name: str | None = None) -> None:
        """Record a user's request at ``at`` (seconds since the start); with a journal, known names are ignored. Raises
        InvalidInput for an unknown user. A time before the last event counts as that event's."""
        if name is not None and name in self._names:
            return
        self._deciding.arrived(user, at, name)
        if self._journal is not None:
            self._remember(name)
        self._seal_full()

    def finished(self, server: str, at: float) -> None:
        """Record that a server's batch ended at ``at`` seconds since the run's start. Raises InvalidInput if the server
        is unknown or idle."""
        self._deciding.finished(server, at)
        self._seal_full()

    def up(self, server: str, at: float) -> None:
        """Record that a server accepts work from ``at`` on (seconds since the run's start); raises InvalidInput if
        unknown."""
        self._deciding.turned(server, "up", at)

    def down(self, server: str, at: float) -> None:
        """Record that a server was lost at ``at`` (seconds since the run's start); requests of its batch wait again.
        Raises InvalidInput if the server is unknown."""
        self._deciding.turned(server, "down", at)

    def decide(self, at: float) -> Now:
        """Decide at ``at`` (seconds since the run's start): batches to start now, and servers to turn on or off. Raises
        IllegalAction if the policy chose an action that isn't allowed."""
        return self._deciding.decide(at)

    @property
    def wake_at(self) -> float | None:
        """Latest time of the next decision, in seconds since the run's start; None: at the next event."""
        return self._deciding.wake_at

    def report(self) -> bool:
        """Report events since the last report, if the service is reachable; True if none is left.

        Raises:
            StewardError: the service refused a report; the message has the field.
        """
        self._seal()
        self._outage.deliver(self._send_first)
        self._renew()
        return not self._unsent

    def flush(self) -> None:
        """Report all events since the last report, waiting as ``retry`` says.

        Raises:
            StewardError: the service refused a report; the message has the field.
            Unreachable: it didn't respond in time; nothing is lost, and the next call continues.
        """
        self._seal()
        while self._send_first(self._retry):
            self._outage.over()
        self._renew()

    def _send_first(self, retry: Retry) -> bool:
        if not self._unsent:
            return False
        self._report(self.iteration, self._unsent[0], retry)
        self._unsent.popleft()
        return True

    def _renew(self) -> None:
        """Rewrite a large journal, once all its events are acknowledged."""
        if self._journal is not None and self._journal.large and not self._unsent:
            self._journal.renew(self._start_record(), {RUN: self._run_record(self._deciding.state())})

    def _start_record(self) -> dict[str, Any]:
        return {BEGUN: {"key": self._key, "workload": self.workload}}

    def _run_record(self, state: list[Any] | None) -> dict[str, Any]:
        """The journal's second line: the run, its state, and the number of reports before the journal's events."""
        names = [*self._names]
        return {
            "id": self.id,
            "expected": self._sent_expected,
            "reports": self.iteration,
            "state": state,
            "names": names,
        }

    def finish(self) -> None:
        """Report all remaining events and end the run. Raises StewardError if the service refused a report or the end,
        Unreachable if it didn't respond in time."""
        self.flush()
        super().finish()

    def close(self) -> None:
        """Close the connection if this run opened it, and the journal, which is deleted if the run has ended."""
        super().close()
        if self._journal is not None:
            self._journal.close(done=self._ended)
            self._journal = None

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


def _parse_workload(answer: httpx.Response) -> dict[str, Any]:
    result = document(answer)
    return {"spec": dict(result["spec"]), "champions": dict(result["champions"])}


def carry(
    workload: str,
    client: Service = None,
    *,
    url: str | None = None,
    role: str | None = None,
    retry: Retry | None = None,
    journal: Path | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> CarriedRun:
    """A run that decides in this process by the service's present champions: ``Policy.load``, then ``CarriedRun``.

    ``role``, ``retry``, ``journal`` and ``wait_seconds`` are passed on to them; ``url`` is the service's address,
    instead of ``client``.

    Raises:
        StewardError: there is no such workload or role.
        Unreachable: the service didn't respond in time.
        JournalError: the journal can't be used.
        ValueError: ``wait_seconds`` isn't above 0.
    """
    client = choose_service(client, url)
    policy = Policy.load(client, workload, role, retry=retry)
    return CarriedRun(client, policy, retry=retry, journal=journal, wait_seconds=wait_seconds)
