"""Asking the API of these settings, on this machine."""

from __future__ import annotations

import ssl
from http.client import HTTPException
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from app.settings import Settings

SECONDS = 4
LONGEST = 65_536
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where such a one is reached # nosec B104


class Reply(NamedTuple):
    """What it answers."""

    status: int
    body: bytes


def address(settings: Settings) -> str:
    """Where it is reached from here."""
    host = ANY.get(settings.host, settings.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_certificate else 'http'}://{shown}:{settings.port}"


def get(settings: Settings, path: str) -> Reply:
    """What it answers, whatever the status.

    Raises:
        OSError: nobody answers there.
    """
    unnamed = ssl._create_unverified_context()  # noqa: S323, SLF001 - none names 127.0.0.1 # nosec B323
    try:
        with urlopen(address(settings) + path, timeout=SECONDS, context=unnamed) as answer:  # noqa: S310 - its own # nosec B310
            return Reply(answer.status, answer.read(LONGEST))
    except HTTPError as error:
        with error:
            return Reply(error.code, error.read(LONGEST))
    except HTTPException as error:
        raise ConnectionError(f"no HTTP: {type(error).__name__}") from error
