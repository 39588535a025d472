"""Lets requests in or not: all of them, before any route or body is looked at."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qs

from starlette.types import Scope

from app.errors import Forbidden, SignIn, Unauthorised
from app.http.caller import ADMIN, ANYBODY, Caller, Quotas
from app.http.limits import LOOPBACK, OriginHeaders, check_host, check_write, single
from app.keys import service as secrets
from app.keys.access import AUTHORIZATION, SIGN_IN, Access, Need, is_page, with_cookie
from app.keys.ring import OLDEST_SECONDS, Admitted, Entry, KeyRing, Rates
from app.keys.service import RunTokens
from app.settings import Settings

if TYPE_CHECKING:  # it takes what verifies signatures, which few services need
    from app.keys.provider import Provider

HOST = b"host"
NAMES = frozenset({AUTHORIZATION, HOST, b"origin", b"sec-fetch-site"})
LONGEST_CREDENTIAL = 8192
LONGEST_KEPT = 2 * secrets.LONGEST  # bytes of headers that are remembered: any key, as it is usually sent, and a host
LARGEST_CACHE = 10_000
REALM = 'realm="Steward"'


class KeyGuard:
    """Knows callers by their keys, or lets anybody in as long as there are none.

    Args:
        access: what each route asks for.
        keys: the valid keys.
        tokens: those of runs.
        provider: knows the tokens of an identity provider, if there is one.
        rates: how many requests are let through, if that is limited.
        settings: whether keys are asked for in any case; hosts and origins.
    """

    def __init__(
        self,
        access: Access,
        keys: KeyRing,
        tokens: RunTokens,
        provider: Provider | None,
        rates: Rates | None,
        settings: Settings,
    ) -> None:
        self._rates, self._quotas = rates, Quotas.of(settings)
        self._access, self._keys, self._tokens, self._provider = access, keys, tokens, provider
        self._required = settings.authentication == "required" or provider is not None
        self._hosts = frozenset(settings.allowed_hosts)
        self._own_hosts = LOOPBACK | self._hosts
        self._anybody = Entry(ANYBODY._replace(quotas=self._quotas), "", None)
        self._origins = frozenset(settings.allowed_origins)

    def recognised(self, scope: Scope, route: str | None) -> Caller | None:
        """Who calls, where this key, or anybody, was let in on this route and host before; None: `admit` tells.

        Every instruction counts here, most of all what is seldom run elsewhere: it is in no cache. The look-up
        tells nothing of a key by its time, for it compares only what has the same hash, of 64 bits with a random key.

        Raises:
            TooManyRequests: it may not.
        """
        if route is None:
            return None
        keys, pairs = self._keys, scope["headers"]
        headers = dict(pairs)
        entry = keys.admitted.get((scope["method"], route, headers.get(AUTHORIZATION), headers.get(HOST)))
        if entry is None or keys.is_older(OLDEST_SECONDS) or (entry.expires_at is not None and entry.has_expired):
            return None
        if len(headers) != len(pairs) or b"origin" in headers or b"sec-fetch-site" in headers:
            return None
        if self._rates is not None:
            self._rates.take(entry.caller)
        return entry.caller

    async def admit(self, scope: Scope, route: str | None) -> Caller:
        """Who calls, if it may do what it asks for.

        Raises:
            BadRequest, Misdirected, Unauthorised, Forbidden, TooManyRequests: it may not.
        """
        method = scope["method"]
        headers = single(scope["headers"], NAMES)
        need = self._access.known(method, route) if route is not None else self._access.of(method, scope["path"])[0]
        check_write(method, headers, self._origins)
        if need.public:
            if not (self._required or self._keys.any):  # but to no page under a name that isn't the service's
                check_host(headers, self._own_hosts)
            return ANYBODY
        if self._keys.is_older(OLDEST_SECONDS):
            await self._keys.look()
        admitted = self._keys.admitted  # before the entries are looked at: what is revoked meanwhile goes with it
        found = await self._who(scope, headers)
        caller = found.caller if isinstance(found, Entry) else found
        if self._rates is not None:
            self._rates.take(caller)
        if caller.run is not None:
            _check_run(caller, need, self._access.of(method, scope["path"])[1], scope)
        else:
            _check_scopes(caller, need)
        if isinstance(found, Entry) and route is not None:
            self._remember(admitted, method, route, headers, found)
        return caller

    def _remember(self, admitted: Admitted, method: str, route: str, headers: OriginHeaders, entry: Entry) -> None:
        """A key that was sent in a header, or that nobody needs one, for requests like this one."""
        sent, host = headers.get(AUTHORIZATION), headers.get(HOST)
        if not sent and entry is not self._anybody:  # it came in a cookie
            return
        if len(sent or b"") + len(host or b"") > LONGEST_KEPT:
            return
        if len(admitted) >= LARGEST_CACHE:  # of one caller's making, perhaps: it must not keep others out
            admitted.clear()
        admitted[method, route, sent, host] = entry

    async def _who(self, scope: Scope, headers: OriginHeaders) -> Entry | Caller:
        """Who calls: by a key, or otherwise."""
        if not (self._required or self._keys.any):  # whoever reaches it is let in
            check_host(headers, self._own_hosts)
            return self._anybody
        if self._hosts:
            check_host(headers, self._hosts)
        return await self._found(scope, with_cookie(scope, headers))

    async def _found(self, scope: Scope, headers: OriginHeaders) -> Entry | Caller:
        """The key that was sent; or who calls with another credential."""
        credential = _credential(scope, headers)
        given = secrets.parse(credential)
        if given is None:
            return (await self._of_provider(scope, credential))._replace(quotas=self._quotas)
        if given.of_run:
            return await self._of_run(scope, given)
        entry = self._keys.get(given.id)
        if entry is None:
            await self._keys.look_again()
            entry = self._keys.get(given.id)
        if not secrets.matches(given.secret, entry and entry.digest) or entry is None:
            _refuse(scope, "no such key, or it was revoked", known=True)
        if entry.has_expired:
            _refuse(scope, f"the key has expired at {entry.expires_at}", known=True)
        return entry

    async def _of_provider(self, scope: Scope, credential: str) -> Caller:
        """The caller that has a token of the identity provider."""
        if self._provider is None:
            _refuse(scope, "this is no key of this service", known=True)
        try:
            return await self._provider.caller(credential)
        except Unauthorised as error:
            _refuse(scope, error.detail, known=True)

    async def _of_run(self, scope: Scope, given: secrets.Given) -> Caller:
        """The caller that has a run's token."""
        token = await self._tokens.get(given.id)
        if not secrets.matches(given.secret, token and token.digest) or token is None:
            _refuse(scope, "no such token of a run", known=True)
        if not self._keys.holds(token.key):
            _refuse(scope, "the key that this token of a run was made with was revoked, or has expired", known=True)
        return Caller(token.tenant, frozenset(), f"run:{token.run}", token.key, token.run, quotas=self._quotas)


def _check_scopes(caller: Caller, need: Need) -> None:
    """A key can do what one of its scopes is for.

    Raises:
        Forbidden: none is.
    """
    if caller.scopes.isdisjoint(need.scopes):
        words = " or ".join(dict.fromkeys((*need.words, ADMIN)))
        challenge = f'Bearer {REALM}, error="insufficient_scope", scope="{" ".join(need.words)}"'
        raise Forbidden(
            f"this key may not do this: it takes the scope {words}",
            headers={"WWW-Authenticate": challenge},
        )


def _check_run(caller: Caller, need: Need, path: dict[str, str], scope: Scope) -> None:
    """A run's token can do nothing but report to its run, end it and read it.

    Raises:
        Forbidden: it is used elsewhere.
    """
    run = path.get("run")
    if run is None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        run = query["run"][0] if len(query.get("run", ())) == 1 and "workload" not in query else None
    if not need.run or run != caller.run:
        raise Forbidden(f"this token can only report to run {caller.run} and read it")


def _credential(scope: Scope, headers: OriginHeaders) -> str:
    """What a caller is to be known by: a bearer token; the password of a browser that shows a page will do, too.

    Raises:
        Unauthorised: there is none.
    """
    header = headers.get(AUTHORIZATION, b"")
    scheme, _, rest = header.decode("latin-1").partition(" ")
    text = rest.strip()
    if len(header) > LONGEST_CREDENTIAL:
        _refuse(scope, f"Authorization has more than {LONGEST_CREDENTIAL:,} characters", known=True)
    if scheme.lower() == "basic" and scope["method"] in ("GET", "HEAD"):  # which browsers send along, whoever asks
        text = _password(text)
    elif scheme.lower() != "bearer":
        text = ""
    if not text:
        _refuse(scope, "send a key as Authorization: Bearer …; make one with `steward key create`", known=False)
    return text


def _password(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, no ASCII, or no text in it
        return ""


def _refuse(scope: Scope, reason: str, *, known: bool) -> NoReturn:
    """Raise `Unauthorised` with its challenge; ``known``: something was sent to be known by. People go to sign in."""
    if is_page(scope):
        raise SignIn(reason, headers={"Location": SIGN_IN})
    challenge = f"Bearer {REALM}" + (', error="invalid_token"' if known else "")
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    if b"text/html" in accept:
        challenge = f"Basic {REALM}, {challenge}"
    raise Unauthorised(reason, headers={"WWW-Authenticate": challenge})
