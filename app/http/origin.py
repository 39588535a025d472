"""Where a request says that it is meant for, and where a browser says that it comes from.

A service without keys trusts whoever reaches loopback, and a browser on this machine does: for any page that it shows.
So hosts are checked by name, against names that a foreign server has point at loopback, and writes by their origin.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.errors import BadRequest, Forbidden, Misdirected

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_PAGES = (b"same-origin", b"none")

Headers = Mapping[bytes, bytes]


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Refuse a request for a host that isn't one of these.

    Raises:
        Misdirected: it names another, or none.
    """
    given = headers.get(b"host", b"").decode("latin-1").lower()
    host = without_port(given)
    if host not in hosts:
        accepted = ", ".join(sorted(hosts))
        raise Misdirected(f"Host {given[:200]!r} is not this service's; accepted: {accepted} (STEWARD_ALLOWED_HOSTS)")


def without_port(host: str) -> str:
    """The name or address of a `Host` header."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name.endswith("]")) else host


def check_write(method: str, headers: Headers, origins: Collection[str]) -> None:
    """Refuse a write that a page of another origin has a browser make; programs send none of these headers.

    Raises:
        Forbidden: it is one.
    """
    if method in READING or (b"origin" not in headers and b"sec-fetch-site" not in headers):
        return
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if origin in origins:
        return
    site = headers.get(b"sec-fetch-site")
    own = origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower()
    if (site is not None and site not in OWN_PAGES) or (origin and not own):
        raise Forbidden(f"a page of {origin[:200] or 'another site'} may not write here (STEWARD_ALLOWED_ORIGINS)")


def single(pairs: Collection[tuple[bytes, bytes]], names: frozenset[bytes]) -> dict[bytes, bytes]:
    """The headers of these names.

    Raises:
        BadRequest: one is given twice, so that two readers may take different ones.
    """
    found: dict[bytes, bytes] = {}
    for name, value in pairs:
        if name in names:
            if name in found:
                raise BadRequest(f"{name.decode().title()} must be given once")
            found[name] = value
    return found
