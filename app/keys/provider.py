"""Tokens of an OpenID Connect identity provider, verified with its published keys, which are cached.

Only asymmetric signatures are accepted: algorithm `none`, or a public key used as a shared secret, is rejected (RFC
8725, sections 3.1 and 3.2).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx
import jwt

from app.errors import Unauthorised, Unavailable
from app.http.caller import SCOPES, TENANT, Caller, granted_scopes
from app.settings import Settings, is_confidential

ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Accepted algorithms by type of key."""
CLAIMS = ("exp", "iss", "aud", "sub")
LEEWAY_SECONDS = 10
FETCH_SECONDS = 5.0
LARGEST_DOCUMENT = 1 << 20
AGAIN_SECONDS = 10.0
"""Smallest interval between fetches of the provider's keys because of an unknown key."""
TRUSTED_SECONDS = 60.0
"""Seconds for which a verified token is cached."""
LARGEST_CACHE = 10_000

UNUSABLE = (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError)
"""Exceptions that ``fetch_signing_keys`` raises."""

logger = logging.getLogger(__name__)


class _Verified(NamedTuple):
    caller: Caller
    until: float
    """End of the cache entry, in seconds of wall-clock time."""


class Provider:
    """Authenticates callers by tokens of one issuer.

    Args:
        settings: the issuer, the required audience, and names of the claims for tenant and scopes.
        clock: wall-clock time in POSIX seconds.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="provider")
        self._keys: dict[str, tuple[str, Any]] = {}
        self._fetched = self._tried = float("-inf")
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()

    async def caller(self, token: str) -> Caller:
        """The caller with this token.

        Raises:
            Unauthorised: it is malformed, of another issuer or audience, or not valid now.
            Unavailable: the issuer's keys can't be fetched.
        """
        digest = hashlib.sha256(token.encode()).digest()
        known = self._verified.get(digest)
        if known is not None and self._clock() < known.until:
            return known.caller
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, RecursionError) as error:
            raise Unauthorised("this is neither a key of this service nor a token of its identity provider") from error
        algorithm, key_id = (str(header.get("alg")), header.get("kid"))
        key = self._key(key_id)
        if key is None or time.monotonic() - self._fetched > self._settings.oidc_keys_seconds:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._fetch)
            key = self._key(key_id)
        if key is None or algorithm not in ALGORITHMS[key[0]]:
            raise Unauthorised("the token is signed with a key or an algorithm that isn't the issuer's")
        claims = self._claims(token, algorithm, key[1])
        settings = self._settings
        tenant = _claim(claims, settings.oidc_tenant_claim)
        if not isinstance(tenant, str) or re.fullmatch(TENANT, tenant) is None:
            raise Unauthorised(f"the token's claim {settings.oidc_tenant_claim!r} names no tenant")
        lease = _claim(claims, settings.oidc_scopes_claim)
        names = lease.split() if isinstance(lease, str) else lease if isinstance(lease, list) else []
        prefix = settings.oidc_scopes_prefix
        scopes = {scope for scope in SCOPES if f"{prefix}{scope}" in names}
        caller = Caller(tenant, granted_scopes(scopes), f"subject:{claims['sub']}")
        verified = _Verified(caller, min(float(claims["exp"]), self._clock() + TRUSTED_SECONDS))
        self._verified[digest] = verified
        while len(self._verified) > LARGEST_CACHE:
            self._verified.popitem(last=False)
        return caller

    def _key(self, key_id: str | None) -> tuple[str, Any] | None:
        """Type and key by id; without an id, the only key; None if there is none."""
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def _claims(self, token: str, algorithm: str, key: Any) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._settings.oidc_issuer,
                audience=self._settings.oidc_audience,
                leeway=LEEWAY_SECONDS,
                options={"require": list(CLAIMS)},
            )
            float(claims["exp"])
        except (jwt.PyJWTError, OverflowError, RecursionError) as error:  # signed, but with times that are none
            raise Unauthorised(f"the token is not valid: {error}") from error
        return claims

    def _fetch(self) -> None:
        """Fetch the issuer's keys, at most every 10 s; known keys are kept if this fails.

        Raises:
            Unavailable: no keys are known.
        """
        begun = time.monotonic()
        if begun - self._tried >= AGAIN_SECONDS:
            try:
                self._keys = fetch_signing_keys(self._settings)
                self._fetched, self._verified = begun, OrderedDict()
            except UNUSABLE as error:
                logger.warning("the keys of %s can't be fetched: %s", self._settings.oidc_issuer, error)
            finally:  # waiting requests use this result, however long it took
                self._tried = time.monotonic()
        if not self._keys:
            raise Unavailable("the identity provider's keys can't be fetched")


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name or by its dotted path such as `realm_access.roles`; None if missing."""
    if name in claims:
        return claims[name]
    lease: Any = claims
    for part in name.split("."):
        lease = lease.get(part) if isinstance(lease, Mapping) else None
    return lease


def fetch_signing_keys(settings: Settings) -> dict[str, tuple[str, Any]]:
    """The issuer's signing keys, fetched over HTTP: type and key by id.

    Raises:
        HTTPError, or another of ``UNUSABLE`` such as ValueError: they can't be fetched, or are malformed.
    """
    with httpx.Client(timeout=FETCH_SECONDS, trust_env=False) as http:
        address = settings.oidc_keys_url
        if not address:
            metadata = _document(http, f"{settings.oidc_issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata["issuer"] != settings.oidc_issuer:
                raise ValueError(f"it calls itself {metadata['issuer']!r}")
            address = metadata["jwks_uri"]
            if not is_confidential(address):
                raise ValueError(f"its keys are fetched over https only, not from {address!r}")
        published = _document(http, address)["keys"]
    usable = [key for key in published if key.get("kty") in ALGORITHMS and key.get("use", "sig") == "sig"]
    keys = {
        str(key.get("kid", "")): (str(key["kty"]), result)
        for key in usable
        if (result := _key_from_jwk(key)) is not None
    }
    if not keys:
        raise ValueError("no key is for signatures")
    return keys


def _key_from_jwk(key: Mapping[str, Any]) -> Any:
    """A key from its JWK; None, with a log message, if its curve or algorithm isn't supported."""
    try:
        return jwt.PyJWK(dict(key)).key
    except jwt.PyJWTError as error:
        logger.warning("key %.80r of the identity provider is left out: %s", key.get("kid"), type(error).__name__)
        return None


def _document(http: httpx.Client, address: str) -> dict[str, Any]:
    answer = http.get(address).raise_for_status()
    if len(answer.content) > LARGEST_DOCUMENT:
        raise ValueError(f"{address} answers with more than {LARGEST_DOCUMENT:,} bytes")
    document: dict[str, Any] = answer.json()
    return document
