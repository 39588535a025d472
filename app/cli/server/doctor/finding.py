"""What one check has found, and what is never to be shown of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from app import startup
from app.settings import Settings

Status = Literal["ok", "warn", "fail"]
SHORTEST_SECRET = 4
HIDDEN = "***"


class Finding(NamedTuple):
    """What a check has found.

    Attributes:
        check: what was looked at, in a word.
        status: `fail`: Steward can't do its work; `warn`: it will not for long, or not all of it.
        detail: what was found.
        remedy: what to do about it; empty where all is well.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""


def refused(check: str, error: startup.StartupError) -> Finding:
    """A start that is refused, whose line ends with the remedy."""
    detail, _, remedy = str(error).rpartition("; ")
    return Finding(check, "fail", detail or remedy, remedy if detail else "")


def hiding(settings: Settings) -> Callable[[str], str]:
    """Hides the passwords of these settings and the caller's key, wherever an error's text has them."""
    secrets = {os.environ.get("STEWARD_API_KEY", "")}
    for url in (settings.database_url, settings.broker_url):
        password = _password(url)
        secrets |= {password, unquote(password)}
    known = sorted((one for one in secrets if len(one) >= SHORTEST_SECRET), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in known:
            text = text.replace(secret, HIDDEN)
        return startup.without_password(text)

    return hide


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:  # no URL: it is refused elsewhere
        return ""


def shown(found: Iterable[Finding], settings: Settings) -> Iterator[Finding]:
    """The findings as they may be shown."""
    hide = hiding(settings)
    for one in found:
        yield one._replace(detail=hide(one.detail), remedy=hide(one.remedy))
