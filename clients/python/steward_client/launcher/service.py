"""The service that decides, as the launcher calls it."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from steward_client.errors import StewardError, Unreachable
from steward_client.live import http_client
from steward_client.retry import Retry

PATIENCE_SECONDS = 30.0
FOLLOW_SECONDS = 0.3
Json = dict[str, Any]
Say = Callable[[str], None]


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
        self._retry = Retry(patience_seconds=PATIENCE_SECONDS)

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
        answer: Json = self._answer(method, path, json).json()
        return answer

    def table(self, path: str) -> list[dict[str, str]]:
        """What is there as a table of texts, by the names of its columns."""
        return list(csv.DictReader(self._answer("GET", path, None, {"Accept": "text/csv"}).text.splitlines()))

    def _answer(
        self, method: str, path: str, json: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        once = {"Idempotency-Key": uuid4().hex} if method == "POST" else {}
        return self._retry.call(self.http, method, path, json, {**once, **(headers or {})})

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
            return "status" in self.http.get("/healthz", timeout=5.0).json()
        except (httpx.TransportError, ValueError):
            return False

    def ready(self) -> bool:
        """Whether it can learn, too: a worker is there."""
        try:
            return self.http.get("/readyz", timeout=5.0).status_code == httpx.codes.OK
        except httpx.TransportError:
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
        """Close the connections."""
        self.http.close()


def refused(error: StewardError | Unreachable) -> str:
    """What the service said, in a line."""
    return " ".join(str(error).split())
