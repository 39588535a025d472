"""The service that decides: the one at the address, or an embedded one for as long as the launch takes."""

from __future__ import annotations

import csv
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from steward_client.errors import StewardError, Unreachable
from steward_client.live import http_client
from steward_client.retry import Retry

from .embedded import Embedded
from .interrupts import held
from .limits.guarded import NotStarted
from .said import unless
from .wishes import Misuse, Wishes

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READY_SECONDS = 60.0
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
    """

    def __init__(self, url: str) -> None:
        self.url, self.own = url, False
        self.http = http_client(url)
        self._retry = Retry(patience_seconds=PATIENCE_SECONDS)

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


@contextmanager
def service_at(wishes: Wishes, folder: Path, say: Say) -> Iterator[Service]:
    """The service at an address of this machine or another; where nobody is there on this one, one of our own.

    Raises:
        Misuse: nobody answers there, and none can be started.
    """
    tell = unless(wishes.quiet, say)
    with closing(Service(wishes.url)) as service, ExitStack() as stack:
        if not service.answers():
            command = _command(service.url)
            data = wishes.data or Path(os.environ.get("STEWARD_DATA_DIR") or "steward-data")
            with _in_turn(data):
                if not service.answers():
                    _embed(service, [*command, "--data", str(data)], folder, say, stack)
                    tell(f"service: none at {service.url}, so one runs for as long as this takes (data: {data})")
        if not service.own:
            tell(f"service: {service.url}")
        yield service


@contextmanager
def _in_turn(data: Path) -> Iterator[None]:
    """Of launchers that are called at once one starts a service, which the others find."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        file = (data / "launch.lock").open("a")
    except OSError as error:
        raise Misuse(f"--data {data}: {error.strerror}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _embed(service: Service, command: list[str], folder: Path, say: Say, stack: ExitStack) -> None:
    try:
        with held():
            own = stack.enter_context(closing(Embedded(command, folder / "serve.log", say)))
    except NotStarted as error:
        raise Misuse(f"no service at {service.url}, and it can't be started: {error}") from error
    _await(service, own)
    service.own = True
    own.keep()


def _command(url: str) -> list[str]:
    address = urlsplit(url)
    beside = Path(sys.executable).with_name("steward")
    program = str(beside) if beside.exists() else shutil.which("steward")
    if address.hostname not in LOOPBACK or address.scheme != "http":
        raise Misuse(f"no service answers at {url}: is it running, and is that its address (--url, STEWARD_URL)?")
    if program is None:
        raise Misuse(
            f"no service answers at {url}, and none is installed here: pip install 'steward[worker]', or --url"
        )
    return [program, "serve", "--host", str(address.hostname), "--port", str(address.port or 80)]


def _await(service: Service, own: Embedded) -> None:
    until = time.monotonic() + READY_SECONDS
    while not service.ready():
        if own.ended(0.1) or time.monotonic() > until:
            raise Misuse(f"no service at {service.url}, and none could be started: {own.last_words}")


def refused(error: StewardError | Unreachable) -> str:
    """What the service said, in a line."""
    return " ".join(str(error).split())
