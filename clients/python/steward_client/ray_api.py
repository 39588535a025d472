"""Client of the REST API of Ray's dashboard: of jobs, and of Ray Serve.

Where Ray asks for a token (2.60 and later, once one was made), it is found as Ray's own client finds it:
``RAY_AUTH_TOKEN``, else the file ``RAY_AUTH_TOKEN_PATH``, else ``~/.ray/auth_token``; none with
``RAY_AUTH_MODE=disabled``.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from .trust import ssl_context

ADDRESS = "http://127.0.0.1:8265"
TIMEOUT_SECONDS = 30.0
TOLD = 200
"""Longest part of an answer, in characters, that an error repeats."""


class RayError(RuntimeError):
    """Ray refuses a call; the message has its answer."""


class RayUnavailable(RayError):
    """Ray doesn't respond, or asks for another token; the message has the remedy."""


class RayApi:
    """Calls Ray's dashboard.

    Args:
        address: URL of the dashboard; empty: ``RAY_API_SERVER_ADDRESS``, else port 8265 of this machine.

    Raises:
        RayUnavailable: the file of ``RAY_AUTH_TOKEN_PATH`` can't be read.
    """

    def __init__(self, address: str = "") -> None:
        self.address = address or os.environ.get("RAY_API_SERVER_ADDRESS", "") or ADDRESS
        self._http = httpx.Client(
            base_url=self.address, headers=_token(), timeout=TIMEOUT_SECONDS, verify=ssl_context()
        )

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def call(self, method: str, path: str, body: Any = None, *, gone: bool = False) -> httpx.Response:
        """The answer to a request with a JSON ``body``; ``gone``: 404 is an answer, too.

        Raises:
            RayUnavailable: Ray doesn't respond, or the token is missing or another.
            RayError: another status than 2xx.
        """
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.RequestError as error:
            raise RayUnavailable(
                f"Ray doesn't answer at {self.address}: {error}; name Ray's dashboard, such as http://HEAD:8265"
            ) from error
        if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):  # no token, or another
            remedy = "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH (`ray get-auth-token` on the head prints the token)"
            raise RayUnavailable(f"Ray at {self.address} refuses: {answer.text[:TOLD]}; {remedy}")
        if not answer.is_success and not (gone and answer.status_code == HTTPStatus.NOT_FOUND):
            raise RayError(f"Ray: {method} {path}: {answer.status_code} {answer.text[:TOLD]}")
        return answer


def _token() -> dict[str, str]:
    """Headers with Ray's token, or none; RayUnavailable if the file of ``RAY_AUTH_TOKEN_PATH`` can't be read."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "disabled":
        return {}
    named = os.environ.get("RAY_AUTH_TOKEN_PATH", "")
    path = Path(named).expanduser() if named else Path.home() / ".ray/auth_token"
    try:
        token = os.environ.get("RAY_AUTH_TOKEN", "") or path.read_text().strip()
    except OSError as error:
        if named:
            raise RayUnavailable(f"RAY_AUTH_TOKEN_PATH={named}: {error.strerror}") from error
        return {}
    return {"Authorization": f"Bearer {token}"} if token else {}
