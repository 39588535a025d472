"""The service that decides, as the launcher calls it."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from steward_client import answers
from steward_client.answers import Read
from steward_client.errors import ClientError, StewardError, Unreachable
from steward_client.live import http_client
from steward_client.retry import Retry

PATIENCE_SECONDS, LONGEST_ASKED_SECONDS = 30.0, 10.0
LOOK_SECONDS = 5.0
FOLLOW_SECONDS = 0.3
Json = dict[str, Any]
Say = Callable[[str], None]
T = TypeVar("T")


class Answer(Json):
    """An object that the service answered; what lacks a member that is asked for is none of its answers."""

    def __missing__(self, name: str) -> Any:
        raise Unreachable(f"the answer has no {name!r}, but {', '.join(self) or 'nothing'}: is it the service's?")


def _answered(answer: httpx.Response) -> Json:
    return Answer(answers.document(answer))


class JobFailed(RuntimeError):
    """A job of the service's failed, or was cancelled; the message is its reason."""


class Service:
    """Calls of the API, repeated for half a minute while nobody answers.

    Attributes:
        own: whether it runs for this launch alone.
        data: the data folder that it serves then.
    """

    def __init__(self, url: str) -> None:
        self.url, self.own, self.data = url, False, Path()
        self.http = http_client(url)
        self._retry = Retry(patience_seconds=PATIENCE_SECONDS, longest_asked_seconds=LONGEST_ASKED_SECONDS)

    def page(self, path: str) -> str:
        """Address of a page of the dashboard, and how long it can be read if that is not for ever."""
        if not self.own:
            return f"{self.url}{path}"
        return f"{self.url}{path} (until this command ends; later: steward serve --data {self.data})"

    def call(self, method: str, path: str, json: Mapping[str, Any] | None = None) -> Json:
        """One call; one that makes something does it once, however often it is repeated.

        Raises:
            StewardError: it was refused.
            Unreachable: nobody answered.
        """
        return self._answer(method, path, _answered, json)

    def table(self, path: str) -> list[dict[str, str]]:
        """What is there as a table of texts, by the names of its columns."""
        found = self._answer("GET", path, answers.table, headers={"Accept": "text/csv"})
        return list(csv.DictReader(found.splitlines()))

    def once(self, method: str, path: str, read: Read[T], seconds: float = LOOK_SECONDS) -> T:
        """One call that is not repeated.

        Raises:
            StewardError: it was refused.
            Unreachable: nobody answered, within so many seconds.
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

    def found(self, path: str) -> Json | None:
        """What is there; None where nothing is."""
        try:
            return self.call("GET", path)
        except StewardError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def answers(self) -> bool:
        """Whether a service of ours is at the address now."""
        try:
            return "status" in self.once("GET", "/healthz", answers.document)
        except ClientError:
            return False

    def ready(self) -> bool:
        """Whether it can learn, too: a worker is there."""
        try:
            return "ready" in self.once("GET", "/readyz", answers.document)
        except ClientError:
            return False

    def done(self, job: Json, told: Callable[[Json], None]) -> Json:
        """Wait for a job; its result.

        Raises:
            JobFailed: it did not succeed.
        """
        while job["state"] in ("queued", "running"):
            told(job)
            time.sleep(FOLLOW_SECONDS)
            job = self.call("GET", f"/jobs/{job['id']}")
        if job["state"] != "succeeded":
            problem = job["error"] or {}
            raise JobFailed(str(problem.get("detail") or f"the job was {job['state']}"))
        told(job)
        return dict(job["result"] or {})

    def close(self) -> None:
        """Close the connections to the service."""
        self.http.close()


def refused(error: StewardError | Unreachable) -> str:
    """What the service said, in a line."""
    return " ".join(str(error).split())
