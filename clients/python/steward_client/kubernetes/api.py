"""Kubernetes API over HTTP, with the service account of this process's pod, or through ``kubectl proxy``."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from ssl import create_default_context
from typing import Any, Literal, Self

import httpx

from steward_client.trust import ssl_context

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS, PAGE = 15.0, 250
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
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class _Token(httpx.Auth):
    """Authorises calls by the service account's token, read for each call, because Kubernetes renews it hourly."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._path.read_text().strip()}"
        yield request


class KubernetesApi:
    """Client of a cluster's API, with paths such as ``/api/v1/namespaces/default/pods/web-0``."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

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
        """Read an object.

        Raises:
            KubernetesError: it doesn't exist, may not be read, or there is no response.
        """
        return self._call("GET", path)

    def list(self, path: str, **query: str) -> Iterator[Object]:
        """Yield all objects of a kind, read page by page; ``query``: parameters such as ``labelSelector``.

        Raises:
            KubernetesError: they may not be read, or there is no response.
        """
        following = ""
        while True:
            page = self._call("GET", path, params={**query, "limit": str(PAGE), "continue": following})
            yield from page["items"]
            following = page["metadata"].get("continue") or ""
            if not following:
                return

    def create(self, path: str, body: Object) -> Object:
        """Create an object and return it as stored.

        Raises:
            KubernetesError: it may not be created, exists already, or there is no response.
        """
        return self._call("POST", path, json=body)

    def delete(self, path: str, options: Object) -> Object:
        """Delete an object and return the response; ``options``: such as ``gracePeriodSeconds``.

        Raises:
            KubernetesError: it doesn't exist, may not be deleted, or there is no response.
        """
        return self._call("DELETE", path, json=options)

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the response's bytes as they arrive, for example of a followed log.

        Raises:
            KubernetesError: it can't be read, or ended early.
        """
        try:
            with self._http.stream("GET", path, timeout=httpx.Timeout(TIMEOUT_SECONDS, read=None)) as answer:
                if not answer.is_success:
                    answer.read()
                    raise KubernetesError(answer.status_code, f"GET {path}: {_message(answer)}")
                yield from answer.iter_bytes()
        except httpx.HTTPError as error:
            raise KubernetesError(0, f"GET {path}: {error}") from error

    def patch(self, path: str, body: Object | Sequence[Object], kind: Patch = "merge") -> Object:
        """Change an object or subresource by a patch of type ``kind``, and return it as stored.

        Raises:
            KubernetesError: it doesn't exist, the change is refused, or there is no response.
        """
        headers = {"Content-Type": f"application/{kind}-patch+json"}
        return self._call("PATCH", path, json=body, headers=headers)

    def _call(self, method: str, path: str, **request: Any) -> Object:
        try:
            answer = self._http.request(method, path, **request)
        except (httpx.RequestError, OSError) as error:
            raise KubernetesError(0, f"{method} {path}: Kubernetes doesn't answer: {error}") from error
        if not answer.is_success:
            told = _message(answer)
            remedy = f"; {REMEDY[answer.status_code]}" if answer.status_code in REMEDY else ""
            raise KubernetesError(answer.status_code, f"{method} {path}: {answer.status_code} {told}{remedy}")
        try:
            found: Object = answer.json()
        except ValueError as error:
            raise KubernetesError(answer.status_code, f"{method} {path}: the answer is not valid JSON") from error
        return found

    def close(self) -> None:
        """Close the connections to the API server."""
        self._http.close()


def _message(answer: httpx.Response) -> str:
    """The message of an error response: of a Kubernetes `Status`, else the first 200 characters."""
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
