"""Kubernetes API over HTTP, with the service account of this process's pod, or through ``kubectl proxy``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from ssl import create_default_context
from typing import Any, Literal, Self

import httpx

from steward_client.trust import ssl_context

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS, PAGE = 15.0, 250
REPEATS, LONGEST_PAUSE_SECONDS, CONFLICT_SECONDS = 3, 5.0, 0.1
CONFLICT, GONE, THROTTLED, SERVER_ERROR = 409, 410, 429, 500
Object = Mapping[str, Any]
Patch = Literal["merge", "strategic-merge", "json"]
REMEDY = {
    401: "the token isn't accepted: is the service account's token mounted?",
    403: "allow it to the service account by a Role and a RoleBinding",
}


class KubernetesError(Exception):
    """Kubernetes refused a call, or didn't respond.

    Attributes:
        status: HTTP status; 0 without a response.
        answer: the response's object of kind `Status`; empty without one.
    """

    def __init__(self, status: int, message: str, answer: Object | None = None) -> None:
        self.status, self.answer = status, answer or {}
        super().__init__(message)

    @property
    def refuses_object(self) -> bool:
        """Whether the object itself is refused, so that another may be accepted: by its validation, a quota, a limit
        range or an admission policy, and not for want of a permission."""
        text = str(self.answer.get("message", ""))
        by_admission = "denied the request" in text or (self.status == 403 and not _lacks_permission(text))
        return self.status == 422 or by_admission


class _Token(httpx.Auth):
    """Authorises calls by the service account's token, read for each call, because Kubernetes renews it hourly."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._path.read_text().strip()}"
        yield request


class KubernetesApi:
    """Client of a cluster's API, with paths such as ``/api/v1/namespaces/default/pods/web-0``.

    A call that the server puts off (429, or 5xx with ``Retry-After``) is repeated up to three times, at most 5 s apart;
    so is a patch that met another change (409).

    Args:
        http: HTTP client with the cluster's address and authorisation.
        sleep: waits for a number of seconds.
    """

    def __init__(self, http: httpx.Client, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http, self._sleep = http, sleep

    @classmethod
    def connect(cls, address: str | None = None) -> Self:
        """Client of the cluster at ``address`` (of ``kubectl proxy``); None: the cluster of this process's pod.

        Raises:
            KubernetesError: there is neither an address nor a pod's service account.
        """
        if address is not None:
            return cls(httpx.Client(base_url=address, timeout=TIMEOUT_SECONDS, verify=ssl_context()))
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not (ACCOUNT / "token").exists():
            raise KubernetesError(0, "not in a pod with a service account: name the address of `kubectl proxy`")
        host = f"[{host}]" if ":" in host else host
        own = create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        base, auth = f"https://{host}:{port}", _Token(ACCOUNT / "token")
        return cls(httpx.Client(base_url=base, timeout=TIMEOUT_SECONDS, auth=auth, verify=own))

    def get(self, path: str) -> Object:
        """Read an object; raises KubernetesError if it doesn't exist, may not be read, or there is no response."""
        return self._call("GET", path)

    def list(self, path: str, **query: str) -> Iterator[Object]:
        """Yield all objects of a kind, read page by page; ``query``: parameters such as ``labelSelector``.

        If the list expires between two pages, the rest is read as it is then.

        Raises:
            KubernetesError: they may not be read, or there is no response.
        """
        following, expired = "", False
        while True:
            try:
                page = self._call("GET", path, params={**query, "limit": str(PAGE), "continue": following})
            except KubernetesError as error:
                metadata = error.answer.get("metadata") or {}
                if error.status != GONE or expired or not metadata.get("continue"):
                    raise
                following, expired = metadata["continue"], True
                continue
            yield from page["items"]
            following, expired = page["metadata"].get("continue") or "", False
            if not following:
                return

    def create(self, path: str, body: Object) -> Object:
        """Create an object and return it as stored. Raises KubernetesError if it may not be created, exists already, or
        there is no response."""
        return self._call("POST", path, json=body)

    def delete(self, path: str, options: Object) -> Object:
        """Delete an object and return the response; ``options``: such as ``gracePeriodSeconds``.

        Raises:
            KubernetesError: it doesn't exist, may not be deleted, or there is no response.
        """
        return self._call("DELETE", path, json=options)

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the response's bytes as they arrive, for example of a followed log. Raises KubernetesError if it can't
        be read, or ended early."""
        try:
            with self._http.stream("GET", path, timeout=httpx.Timeout(TIMEOUT_SECONDS, read=None)) as answer:
                if not answer.is_success:
                    answer.read()
                    raise KubernetesError(answer.status_code, f"GET {path}: {_message(answer)}")
                yield from answer.iter_bytes()
        except httpx.HTTPError as error:
            raise KubernetesError(0, f"GET {path}: {error}") from error

    def patch(self, path: str, body: Object | Sequence[Object], kind: Patch = "merge") -> Object:
        """Change an object or subresource by a patch of type ``kind``, and return it as stored. Raises KubernetesError
        if it doesn't exist, the change is refused, or there is no response."""
        headers = {"Content-Type": f"application/{kind}-patch+json"}
        return self._call("PATCH", path, json=body, headers=headers)

    def _call(self, method: str, path: str, **request: Any) -> Object:
        for left in range(REPEATS, -1, -1):
            try:
                answer = self._http.request(method, path, **request)
            except (httpx.RequestError, OSError) as error:
                raise KubernetesError(0, f"{method} {path}: Kubernetes doesn't answer: {error}") from error
            pause = _pause(method, answer)
            if pause is None or not left:
                break
            self._sleep(pause)
        if not answer.is_success:
            message, status = _message(answer), answer.status_code
            by_role = status != 403 or _lacks_permission(message)  # else admission refused it
            remedy = f"; {REMEDY[status]}" if status in REMEDY and by_role else ""
            raise KubernetesError(status, f"{method} {path}: {status} {message}{remedy}", _status(answer))
        try:
            body: Object = answer.json()
        except ValueError as error:
            raise KubernetesError(answer.status_code, f"{method} {path}: the answer is not valid JSON") from error
        return body

    def close(self) -> None:
        """Close the connections to the API server."""
        self._http.close()


def _pause(method: str, answer: httpx.Response) -> float | None:
    """Seconds after which a call is repeated; None: it isn't. Kubernetes may have carried out a POST that failed with
    5xx."""
    if method == "PATCH" and answer.status_code == CONFLICT:
        return CONFLICT_SECONDS
    put_off = answer.status_code == THROTTLED or (answer.status_code >= SERVER_ERROR and method != "POST")
    seconds = answer.headers.get("Retry-After", "")
    return min(float(seconds), LONGEST_PAUSE_SECONDS) if put_off and seconds.isdecimal() else None


def _lacks_permission(message: str) -> bool:
    """Whether a refusal (403) is by the caller's permissions, and not by admission, which has the same status."""
    return "User " in message and " cannot " in message


def _status(answer: httpx.Response) -> Object:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, Mapping) else {}


def _message(answer: httpx.Response) -> str:
    """The message of an error response: of a Kubernetes `Status`, else the first 200 characters."""
    return str(_status(answer).get("message") or answer.text[:200])
