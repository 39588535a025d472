"""Authentication of all requests, before routing and before their bodies are read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qs

from starlette.types import Scope

from app.errors import Forbidden, SignIn, Unauthorised
from app.http.caller import ADMIN, ANYBODY, Caller, Quotas
from app.http.limits import LOOPBACK, OriginHeaders, check_host, check_write, single
from app.keys import service as secrets
from app.keys.access import AUTHORIZATION, SIGN_IN, Access, is_page, with_cookie
from app.keys.ring import OLDEST_SECONDS, Admitted, Entry, KeyRing, Rates
from app.keys.service import RunTokens
from app.settings import Settings

if TYPE_CHECKING:  # it imports packages that verify signatures, which few services need
    from app.keys.provider import Provider

HOST = b"host"
NAMES = frozenset({AUTHORIZATION, HOST, b"origin", b"sec-fetch-site"})
LONGEST_CREDENTIAL = 8192
LONGEST_KEPT = 2 * secrets.LONGEST  # most bytes of both headers in a cached entry: enough for any key and a host
LARGEST_CACHE = 10_000
REALM = 'realm="Steward"'


class KeyGuard:
    """Authenticates callers by their keys; without any key in the database, every caller on loopback is admitted.

    Args:
        access: requirements of each route.
        keys: the valid keys.
        tokens: tokens of runs.
        provider: verifies tokens of an identity provider; None: there is none.
        rates: rate limits; None: unlimited.
        settings: whether keys are always required; allowed hosts and origins.
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

    def cached_caller(self, scope: Scope, route: str | None) -> Caller | None:
        """The caller, if its credential was admitted on this route and host before; None: call ``admit``.

        The look-up's duration reveals nothing about keys: only values with equal hashes (64 bits, with a random key)
        are compared. Raises TooManyRequests if the caller exceeds its rate limit.
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
        """The caller, if it may make this request.

        Raises:
            BadRequest, Misdirected, Unauthorised, Forbidden: the request is malformed or not permitted.
            TooManyRequests: the caller exceeds its rate limit.
            Unavailable: the identity provider's keys can't be fetched.
        """
        method = scope["method"]
        headers = single(scope["headers"], NAMES)
        need = (
            self._access.requirement(method, route) if route is not None else self._access.of(method, scope["path"])[0]
        )
        check_write(method, headers, self._origins)
        if need.public:
            if not (self._required or self._keys.any):  # but to no page under a name that isn't the service's
                check_host(headers, self._own_hosts)
            return ANYBODY
        if self._keys.is_older(OLDEST_SECONDS):
            await self._keys.look()
        admitted = self._keys.admitted  # read before the entries: a revocation meanwhile replaces it
        result = await self._who(scope, headers)
        caller = result.caller if isinstance(result, Entry) else result
        if self._rates is not None:
            self._rates.take(caller)
        if caller.run is not None:
            # Check that a run's token is used for this run only
            run = self._access.of(method, scope["path"])[1].get("run")
            if run is None:
                query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
                run = query["run"][0] if len(query.get("run", ())) == 1 and "workload" not in query else None
            if not need.run or run != caller.run:
                raise Forbidden(f"this token can only report to run {caller.run} and read it")
        else:
            # Check that the caller has one of the required scopes
            if caller.scopes.isdisjoint(need.scopes):
                words = " or ".join(dict.fromkeys((*need.words, ADMIN)))
                challenge = f'Bearer {REALM}, error="insufficient_scope", scope="{" ".join(need.words)}"'
                raise Forbidden(
                    f"this key lacks the required scope: {words}",
                    headers={"WWW-Authenticate": challenge},
                )
        if isinstance(result, Entry) and route is not None:
            self._remember(admitted, method, route, headers, result)
        return caller

    def _remember(self, admitted: Admitted, method: str, route: str, headers: OriginHeaders, entry: Entry) -> None:
        """Cache an admitted key of a header, or the fact that none is required, for equal requests."""
        sent, host = headers.get(AUTHORIZATION), headers.get(HOST)
        if not sent and entry is not self._anybody:  # it came in a cookie
            return
        if len(sent or b"") + len(host or b"") > LONGEST_KEPT:
            return
        if len(admitted) >= LARGEST_CACHE:  # of one caller's making, perhaps: it must not keep others out
            admitted.clear()
        admitted[method, route, sent, host] = entry

    async def _who(self, scope: Scope, headers: OriginHeaders) -> Entry | Caller:
        """The entry of the caller's key, or the caller with another credential; anybody's entry if none is required.

        Raises:
            Misdirected: the Host header names no accepted host.
            Unauthorised: the credential is missing or not valid.
            Unavailable: the identity provider's keys can't be fetched.
        """
        if not (self._required or self._keys.any):  # no credential is required
            check_host(headers, self._own_hosts)
            return self._anybody
        if self._hosts:
            check_host(headers, self._hosts)
        return await self._authenticate(scope, with_cookie(scope, headers))

    async def _authenticate(self, scope: Scope, headers: OriginHeaders) -> Entry | Caller:
        """The entry of a key, or the caller with another credential; raises Unauthorised if it isn't valid."""
        credential = _credential(scope, headers)
        secret = secrets.parse(credential)
        if secret is None:
            return (await self._of_provider(scope, credential))._replace(quotas=self._quotas)
        if secret.of_run:
            return await self._of_run(scope, secret)
        entry = self._keys.get(secret.id)
        if entry is None:
            await self._keys.look_again()
            entry = self._keys.get(secret.id)
        if not secrets.matches(secret.secret, entry and entry.digest) or entry is None:
            _refuse(scope, "unknown or revoked key", known=True)
        if entry.has_expired:
            _refuse(scope, f"the key has expired at {entry.expires_at}", known=True)
        return entry

    async def _of_provider(self, scope: Scope, credential: str) -> Caller:
        """The caller with a token of the identity provider; raises Unauthorised if it isn't valid."""
        if self._provider is None:
            _refuse(scope, "this is not a key of this service", known=True)
        try:
            return await self._provider.caller(credential)
        except Unauthorised as error:
            _refuse(scope, error.detail, known=True)

    async def _of_run(self, scope: Scope, credential: secrets.Credential) -> Caller:
        """The caller with a run's token; raises Unauthorised if the token or its key isn't valid any more."""
        token = await self._tokens.get(credential.id)
        if not secrets.matches(credential.secret, token and token.digest) or token is None:
            _refuse(scope, "unknown run token", known=True)
        if not self._keys.holds(token.key):
            _refuse(scope, "the key that created this run token was revoked or has expired", known=True)
        return Caller(token.tenant, frozenset(), f"run:{token.run}", token.key, token.run, quotas=self._quotas)


def _credential(scope: Scope, headers: OriginHeaders) -> str:
    """The request's credential: a bearer token or, for pages, the password of HTTP Basic; Unauthorised if none."""
    header = headers.get(AUTHORIZATION, b"")
    scheme, _, rest = header.decode("latin-1").partition(" ")
    text = rest.strip()
    if len(header) > LONGEST_CREDENTIAL:
        _refuse(scope, f"Authorization has more than {LONGEST_CREDENTIAL:,} characters", known=True)
    if scheme.lower() == "basic" and scope["method"] in (
        "GET",
        "HEAD",
    ):  # which browsers also send cross-site
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
    """Raise `Unauthorised` with a challenge (``known``: a credential was sent), for pages `SignIn`, which redirects."""
    if is_page(scope):
        raise SignIn(reason, headers={"Location": SIGN_IN})
    challenge = f"Bearer {REALM}" + (', error="invalid_token"' if known else "")
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    if b"text/html" in accept:
        challenge = f"Basic {REALM}, {challenge}"
    raise Unauthorised(reason, headers={"WWW-Authenticate": challenge})
