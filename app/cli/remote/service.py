"""HTTP client of a running service for commands; follows jobs to their end."""

import json
import os
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from app.cli.failures import Json, RefusedError, UnreachableError
from app.cli.options import without_userinfo
from app.startup import StartupError

__all__ = ["Json", "RefusedError", "Service", "UnreachableError", "authorization_header"]
READ_SECONDS = 60.0
NOT_FOUND = 404
QUOTED = 200
"""Maximum number of characters of a foreign text in a message."""
PATIENCE_SECONDS = 30.0
"""Seconds for which a followed job's service may be unreachable."""


def authorization_header() -> dict[str, str]:
    """Authorization header with the key in the environment variable `STEWARD_API_KEY`; empty without one.

    ``--token`` before a command sets this variable; it is for hosts without other users, who could read it.

    Raises:
        StartupError: the key has characters that no header may have; the message doesn't quote it.
    """
    key = os.environ.get("STEWARD_API_KEY", "").strip()
    if re.search("[^!-~]", key):
        raise StartupError("STEWARD_API_KEY: has a space, a line break or a character that isn't ASCII; copy it again")
    return {"Authorization": f"Bearer {key}"} if key else {}


class Service:
    """HTTP client of one service, and context manager that closes it; raises UnreachableError if ``url`` is no URL."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = without_userinfo(url)
        try:
            # Certificate authorities are read for https alone, since that takes long
            self._http = httpx.Client(
                base_url=url,
                timeout=READ_SECONDS,
                trust_env=False,
                headers={**authorization_header(), **(headers or {})},
                verify=httpx.create_ssl_context()
                if url.lower().startswith("https:")
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            )
        except httpx.InvalidURL as error:
            # httpx's own words may quote a part of a password
            message = f"{self.url!r} is not the address of a service, such as http://127.0.0.1:8080"
            raise UnreachableError(message) from error
        except OSError as error:  # no such file, or no certificate in it
            named = f"SSL_CERT_FILE={os.environ.get('SSL_CERT_FILE')}: {error.strerror or error}"
            raise UnreachableError(f"{named}; a PEM file of certificates is accepted") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def ready(self) -> bool:
        """Whether the service and its database, broker and workers are ready; False if it is unreachable."""
        try:
            return self._http.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def call(self, method: str, path: str, **request: Any) -> Json:
        """Make a request and return the response's JSON.

        Raises:
            RefusedError: the response is an error.
            UnreachableError: the service doesn't respond, or not with JSON, or refers to another address.
        """
        response = self._answer(method, path, **request)
        try:
            answer: Json = response.json()
        except ValueError as error:
            raise UnreachableError(f"{self.url} does not answer with JSON: is it a Steward service?") from error
        return answer

    def send(self, method: str, path: str, **request: Any) -> None:
        """Make a request and ignore its body; raises RefusedError for an error, UnreachableError without a response."""
        self._answer(method, path, **request)

    def download(self, path: str, **request: Any) -> bytes:
        """The body of a GET; raises RefusedError if the response is an error, UnreachableError if there is none."""
        return self._answer("GET", path, **request).content

    def stream(self, path: str, **request: Any) -> Iterator[bytes]:
        """Yield the body of a GET in pieces; raises RefusedError for an error, UnreachableError without a response."""
        try:
            with self._http.stream("GET", path, **request) as response:
                if response.is_error:
                    response.read()
                    raise RefusedError(_problem(response))
                yield from response.iter_bytes()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> UnreachableError:
        remedy = "start one with `steward serve`, or say where it is (--url, STEWARD_URL)"
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            remedy = "SSL_CERT_FILE names the certificate of an authority of your own"
        # The words about a request's form quote its headers, and so the key
        reason = "the request can't be sent" if isinstance(error, httpx.LocalProtocolError) else str(error)[:QUOTED]
        return UnreachableError(f"no answer from {self.url}: {reason}; {remedy}")

    def _answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_redirect:
            target = json.dumps(without_userinfo(response.headers.get("location", ""))[:QUOTED])
            remedy = "say where the service is (--url, STEWARD_URL)"
            raise UnreachableError(f"{self.url} redirects to {target} (status {response.status_code}); {remedy}")
        if response.is_error:
            raise RefusedError(_problem(response))
        return response

    def follow(self, job: str) -> Iterator[Json]:
        """A job's events until it ends, over as many connections as necessary; the job itself comes last.

        Raises:
            RefusedError: it failed or was cancelled.
            UnreachableError: the service was unreachable for more than 30 s.
        """
        last, answered = "", time.monotonic()
        while True:
            try:
                for identifier, event in self._events(job, last):
                    last, answered = identifier, time.monotonic()
                    yield event
                ended = self.call("GET", f"/jobs/{job}")
            except (httpx.TransportError, UnreachableError) as error:
                if time.monotonic() - answered > PATIENCE_SECONDS:
                    raise UnreachableError(
                        f"{self.url} does not answer any more; it keeps job {job}: `steward job watch {job}`"
                    ) from error
                time.sleep(1.0)
                continue
            answered = time.monotonic()
            if ended["state"] not in ("queued", "running"):
                break
            time.sleep(0.1)
        yield ended
        if ended["state"] != "succeeded":
            raise RefusedError(ended["error"] or {"title": f"the job was {ended['state']}", "detail": f"job {job}"})

    def _events(self, job: str, after: str) -> Iterator[tuple[str, Json]]:
        headers = {"accept": "text/event-stream", **({"last-event-id": after} if after else {})}
        with self._http.stream("GET", f"/jobs/{job}/events", headers=headers) as response:
            if response.is_error:
                response.read()
                raise RefusedError(_problem(response))
            identifier = after
            for line in response.iter_lines():
                field, _, value = line.partition(":")
                if field == "id":
                    identifier = value.strip()
                elif field == "data":
                    yield identifier, json.loads(value)


def _problem(response: httpx.Response) -> Json:
    """The problem document of an error response; made from its text if a proxy sent something else."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = None
    problem: Json = body if isinstance(body, dict) else {}
    if "title" not in problem:
        problem |= {"title": f"status {status}", "detail": response.text[:QUOTED]}
    return {**problem, "status": status}
