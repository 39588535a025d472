"""Text and HTML of the client's objects: what each is, its state, and the URL of its page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import httpx

if TYPE_CHECKING:
    from .generated import AuthenticatedClient, Client

Service: TypeAlias = "str | Client | AuthenticatedClient | None"
"""A service's address, or a generated client; None: the address is in ``STEWARD_URL``, else it is ``URL``."""

URL = "http://127.0.0.1:8080"


def choose_service(client: Service, url: str | None) -> Service:
    """Return ``client`` (a generated client, or an address), or ``url`` (an address) if that is None.

    Raises:
        TypeError: both are given.
    """
    if client is not None and url is not None:
        raise TypeError(f"give client= or url=, not both: {address(client)}, {address(url)}")
    return url if client is None else client


def address(client: Service) -> str:
    """The URL of a service without user and password; None: that of ``STEWARD_URL``, else this machine's port 8080."""
    if client is None or isinstance(client, str):
        url = httpx.URL(client or os.environ.get("STEWARD_URL") or URL)
    else:
        url = client.get_httpx_client().base_url
    return shown_url(url)


def shown_url(url: httpx.URL) -> str:
    """A URL to be shown: without user, password and trailing slash."""
    return str(url.copy_with(username="", password="")).rstrip("/")  # nosec B106 - none


class Summary(NamedTuple):
    """Summary of an object for display: its id or name (empty: none yet), further members, and the URL of its page."""

    name: str
    members: Mapping[str, object]
    url: str


class Shown:
    """Base of objects whose ``repr``, and HTML in notebooks, name the object, its state and the URL of its page."""

    def _summary(self) -> Summary:
        raise NotImplementedError

    def __repr__(self) -> str:
        name, members, url = self._summary()
        shown = {name_: value for name_, value in members.items() if value is not None} | {"url": url}
        parts = [repr(name)] if name else []
        return f"{type(self).__name__}({', '.join([*parts, *(f'{one}={value!r}' for one, value in shown.items())])})"

    def _repr_html_(self) -> str:
        name, members, url = self._summary()
        shown = ", ".join(f"{escape(one)}: {escape(str(value))}" for one, value in members.items() if value is not None)
        link = f'<a href="{escape(url)}">{escape(name or url)}</a>'
        return f"<b>{type(self).__name__}</b> {link}{f' ({shown})' if shown else ''}"
