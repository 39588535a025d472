"""Who calls, in tests of parts that stand behind the gateway."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.caller import ANYBODY, Caller


class Open:
    """A guard that lets anybody in."""

    def cached_caller(self, scope: Scope, route: str | None) -> Caller:
        """Whoever it is."""
        return ANYBODY

    async def admit(self, scope: Scope, route: str | None) -> Caller:
        """Whoever it is."""
        return ANYBODY


def called_by(caller: Caller, app: ASGIApp) -> ASGIApp:
    """An application without a gateway, told who calls."""

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "caller": caller}, receive, send)

    return named
