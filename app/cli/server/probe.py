"""Requests to an API, by default the one on this host, with the standard library alone.

Health checks start a process every few seconds: importing the service or its settings would cost most of a second.
"""

from __future__ import annotations

import os
import ssl
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from app import HOST, PORT

if TYPE_CHECKING:
    from app.settings import Settings

SECONDS = 4
LONGEST = 65_536
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where such a one is reached # nosec B104


class Reply(NamedTuple):
    """HTTP status and body (its first ``LONGEST`` bytes) of a response."""

    status: int
    body: bytes


def address(settings: Settings | None = None) -> str:
    """URL of the API from this host; without settings by the environment, whose values are not checked."""
    if settings is not None:
        host, port, tls = settings.host, str(settings.port), settings.tls_certificate is not None
    else:
        host, port = os.environ.get("STEWARD_HOST", HOST), os.environ.get("STEWARD_PORT", str(PORT))
        tls = "STEWARD_TLS_CERTIFICATE" in os.environ
    host = ANY.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


def get(url: str, path: str, *, verifies: bool = False) -> Reply:
    """GET a path of the API at ``url``: any status, and the body.

    Args:
        verifies: whether its certificate must name the host; certificates don't name 127.0.0.1.

    Raises:
        OSError: it doesn't respond within 4 s, or not in HTTP.
        ValueError: ``url`` is no URL.
    """
    context = None if verifies else ssl._create_unverified_context()  # noqa: S323, SLF001 # nosec B323
    try:
        with urlopen(url + path, timeout=SECONDS, context=context) as answer:  # noqa: S310 - http or https # nosec B310
            return Reply(answer.status, answer.read(LONGEST))
    except HTTPError as error:
        with error:
            return Reply(error.code, error.read(LONGEST))
    except HTTPException as error:
        raise ConnectionError(f"no HTTP: {type(error).__name__}") from error
