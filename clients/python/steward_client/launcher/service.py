"""Client of the service for the launcher."""

from __future__ import annotations

import csv
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from steward_client import answers
from steward_client.answers import Read
from steward_client.display import shown_url
from steward_client.errors import ClientError, StewardError, Unreachable
from steward_client.live import http_client
from steward_client.retry import Retry

PATIENCE_SECONDS, LONGEST_ASKED_SECONDS = 30.0, 10.0
LOOK_SECONDS = 5.0
FOLLOW_SECONDS, WORKER_SECONDS = 0.3, 60.0
DEFAULT_PORT = 8080
Json = dict[str, Any]
Say = Callable[[str], None]
T = TypeVar("T")


class Answer(Json):
    """A JSON object of a response; a missing member raises Unreachable, as it can't be the service's own response."""

    def __missing__(self, name: str) -> Any:
        raise Unreachable(f"the answer has no {name!r}, but {', '.join(self) or 'nothing'}: is it the service's?")


def _parse(answer: httpx.Response) -> Json:
    return Answer(answers.document(answer))


class JobFailed(RuntimeError):
    """A job of the service failed or was cancelled; the message is its reason."""


class Service:
    """Client of the API that repeats each call for up to 30 s while the service doesn't respond.

    Attributes:
        own: whether the service runs only for this launch.
        data: data folder of that service.
    """

    def __init__(self, url: str) -> None:
        self.url, self.own, self.data = url, False, Path()
        self.http = http_client(url)
        self._retry = Retry(patience_seconds=PATIENCE_SECONDS, longest_asked_seconds=LONGEST_ASKED_SECONDS)

    def page(self, path: str) -> str:
        """URL of a page of the dashboard."""
        return f"{shown_url(httpx.URL(self.url))}{path}"

    @property
    def serve(self) -> str:
        """Command line that shows the pages of an embedded service after this launch, at the same address."""
        port = f" --port {result}" if (result := urlsplit(self.url).port or 80) != DEFAULT_PORT else ""
        return f"steward serve --data {shlex.quote(str(self.data))}{port}"

    def call(self, method: str, path: str, json: Mapping[str, Any] | None = None) -> Json:
        """Make a call and return the response's JSON object; a repeated POST takes effect once.

        Raises:
            StewardError: the service refused the call.
            Unreachable: it didn't respond.
        """
        return self._answer(method, path, _parse, json)

    def table(self, path: str) -> list[dict[str, str]]:
        """Rows of a CSV response to a GET, as texts by column name; raises StewardError if the service refuses the
        call, and Unreachable if it doesn't respond."""
        response = self._answer("GET", path, answers.table, headers={"Accept": "text/csv"})
        return list(csv.DictReader(response.splitlines()))

    def once(self, method: str, path: str, read: Read[T], seconds: float = LOOK_SECONDS) -> T:
        """Make one call without repetition, and return its response as parsed by ``read``.

        Raises:
            StewardError: the service refused the call.
            Unreachable: it didn't respond within ``seconds``.
        """
        return Retry(patience_seconds=seconds, attempts=1).call(self.http, method, path, read)

    def _answer(
        self,
        method: str,
        path: str,
        read: Read[T],
        json: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        once = {"Idempotency-Key": uuid4().hex} if method == "POST" else {}
        return self._retry.call(self.http, method, path, read, json, {**once, **(headers or {})})

    def get_or_none(self, path: str) -> Json | None:
        """JSON object at a path; None if the service responds 404. Raises StewardError if it refuses the call
        otherwise, and Unreachable if it doesn't respond."""
        try:
            return self.call("GET", path)
        except StewardError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def is_up(self) -> bool:
        """Whether a Steward service responds at the address now. Never raises."""
        try:
            return "status" in self.once("GET", "/healthz", answers.document)
        except ClientError:
            return False

    def ready(self, *, worker: bool) -> bool:
        """Whether the service is ready for decisions; with ``worker``, whether for jobs, too. Never raises."""
        path = "/readyz" if worker else "/readyz?exclude=worker&exclude=broker"
        try:
            return "ready" in self.once("GET", path, answers.document)
        except ClientError:
            return False

    def done(self, job: Json, report: Callable[[Json], None]) -> Json:
        """Wait for a job's end and return its result; ``report`` is called with the job at each look (every 0.3 s).

        Raises:
            JobFailed: the job failed, was cancelled, or waits for over 60 s while the service has no worker.
            StewardError: the service refused a call.
            Unreachable: it didn't respond.
        """
        until = time.monotonic() + WORKER_SECONDS
        while job["state"] in ("queued", "running"):
            report(job)
            time.sleep(FOLLOW_SECONDS)
            job = self.call("GET", f"/jobs/{job['id']}")
            if job["state"] == "queued" and time.monotonic() > until:
                if not self.ready(worker=True):
                    raise JobFailed(f"{shown_url(httpx.URL(self.url))} has no worker: start `steward worker` there")
                until = time.monotonic() + WORKER_SECONDS
        if job["state"] != "succeeded":
            problem = job["error"] or {}
            raise JobFailed(str(problem.get("detail") or f"the job was {job['state']}"))
        report(job)
        return dict(job["result"] or {})

    def close(self) -> None:
        """Close the connections to the service."""
        self.http.close()


def error_line(error: StewardError | Unreachable) -> str:
    """An error's message in one line."""
    return " ".join(str(error).split())
