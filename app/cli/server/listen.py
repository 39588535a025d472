"""The sockets of the API, bound before anything else is done: a port that is taken is told at once."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from pathlib import Path

from app.settings import Settings
from app.startup import StartupError


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(settings: Settings) -> Settings:
    """Without keys the service binds loopback only; anywhere else it asks for keys as long as it lives.

    Raises:
        StartupError: any other address.
    """
    if is_loopback(settings.host):
        return settings
    if settings.authentication != "required" and not settings.oidc_issuer and not has_keys(settings):
        raise StartupError(
            f"STEWARD_HOST={settings.host!r}: refusing to listen there: there are no API keys, so anybody who reaches "
            "it could do anything; make one (steward key create --scopes admin), or use 127.0.0.1"
        )
    return settings.model_copy(update={"authentication": "required"})


def has_keys(settings: Settings) -> bool:
    """Whether a key was ever made; nothing is created to find out."""
    from sqlalchemy.exc import SQLAlchemyError

    from app.database.engine import Database, normalised_url
    from app.keys import repository

    url = normalised_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return False
    database = Database(settings.database_url, settings)
    try:
        with database.reading() as session:
            return repository.fingerprint(session).made > 0
    except SQLAlchemyError:  # no table yet; whatever else is wrong is told when it is needed
        return False
    finally:
        database.dispose()


def bind(settings: Settings) -> list[socket.socket]:
    """Bound sockets that do not listen yet, one for each address of the host.

    Raises:
        StartupError: the port is taken or may not be used.
    """
    found: dict[str, socket.AddressFamily] = {}
    for version, _, _, _, address in socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM):
        found.setdefault(str(address[0]), version)
    bound: list[socket.socket] = []
    for host, family in found.items():
        listener = _bound(family, host, settings.port)
        if listener is not None:
            bound.append(listener)
    if not bound:
        raise StartupError(f"STEWARD_HOST={settings.host!r}: this machine has no such address; use 127.0.0.1")
    return bound


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket | None:
    """None where this machine does not have the address (IPv6 may be off)."""
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise StartupError(refusal(host, port, error)) from error
    return listener


def refusal(host: str, port: int, error: OSError) -> str:
    """Why a port can't be had, in a line."""
    remedy = "stop what listens there, or choose another (--port; 0 takes a free one)"
    return f"STEWARD_PORT={port}: {os.strerror(error.errno or 0).lower()} on {host}; {remedy}"
