"""Tokens of an identity provider, against a small one on loopback that signs, rotates its keys, and goes away."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.keys import provider
from app.main import create_app
from app.settings import Settings


class Issuer:
    """Publishes the public halves of its keys, and signs with the private ones."""

    def __init__(self) -> None:
        self.requests = 0
        self.answering = threading.Event()
        self.answering.set()
        self.calls_itself = self.keys_at = ""
        self.more: list[dict[str, Any]] = []
        self.private: dict[str, Any] = {"one": rsa.generate_private_key(65537, 2048)}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests += 1
                issuer.answering.wait()
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self, path: str) -> dict[str, Any]:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.calls_itself or self.url, "jwks_uri": self.keys_at or f"{self.url}/keys"}
        shared = {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}
        return {"keys": [*(self.jwk(name) for name in self.private), shared, *self.more]}

    def jwk(self, name: str) -> dict[str, Any]:
        key = self.private[name].public_key()
        algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPublicKey) else jwt.algorithms.ECAlgorithm
        return {**algorithm.to_jwk(key, as_dict=True), "kid": name, "use": "sig"}

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "steward", "sub": "ada", "exp": now + 300, "iat": now, "tenant": "blue"}
        changed = {**claims, "scope": "openid read report", **changes}
        return {name: value for name, value in changed.items() if value is not None}

    def token(self, kid: str = "one", algorithm: str = "RS256", **changes: Any) -> str:
        return jwt.encode(self.claims(**changes), self.private[kid], algorithm, headers={"kid": kid})

    def stop(self) -> None:
        self.answering.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.stop()


@pytest.fixture
def client(settings: Settings, database: Database, issuer: Issuer) -> TestClient:
    settings = settings.model_copy(update={"oidc_issuer": issuer.url})
    return TestClient(create_app(settings, database), raise_server_exceptions=False)


def status(client: TestClient, token: str, method: str = "GET", path: str = "/workloads") -> int:
    return client.request(method, path, headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_token_names_tenant_and_scopes(client: TestClient, issuer: Issuer) -> None:
    token = issuer.token()
    assert client.get("/workloads").status_code == 401
    assert status(client, token) == 200
    assert status(client, token, "DELETE", "/workloads/x") == 403
    assert status(client, issuer.token(scope=["admin"]), "DELETE", "/workloads/x") == 404
    assert status(client, issuer.token(scope=None)) == 403
    body = client.post("/keys", json={}, headers={"Authorization": f"Bearer {issuer.token(scope='admin')}"}).json()
    assert (body["tenant"], body["created_by"]) == ("blue", "subject:ada")
    assert issuer.requests == 2  # its configuration and its keys, once


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"exp": None},
        {"exp": 10**400},
        {"exp": float("inf")},
        {"nbf": float("inf")},
        {"sub": None},
        {"nbf": 2**31},
        {"tenant": None},
        {"tenant": "No Tenant"},
        {"tenant": "blue\n"},
        {"tenant": ["blue"]},
    ],
)
def test_a_token_that_is_not_for_here_and_now_is_refused(
    client: TestClient, issuer: Issuer, changes: dict[str, Any]
) -> None:
    assert status(client, issuer.token(**changes)) == 401


def test_algorithms_that_need_no_private_key_are_refused(client: TestClient, issuer: Issuer) -> None:
    assert status(client, jwt.encode(issuer.claims(), "", "none", headers={"kid": "one"})) == 401
    public = issuer.private["one"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret, kid in ((public, "one"), (b"secret", "shared"), (json.dumps(issuer.jwk("one")).encode(), "one")):
        assert status(client, signed_with_a_shared_secret(issuer.claims(), secret, kid)) == 401
    other = Issuer()
    assert status(client, jwt.encode(issuer.claims(), other.private["one"], "RS256", headers={"kid": "one"})) == 401
    own = {"kid": "one", "jwk": other.jwk("one"), "jku": f"{other.url}/keys"}
    assert status(client, jwt.encode(issuer.claims(), other.private["one"], "RS256", headers=own)) == 401
    assert other.requests == 0
    other.stop()


def signed_with_a_shared_secret(claims: dict[str, Any], secret: bytes, kid: str) -> str:
    """A token by HMAC, which the library itself refuses to make of a public key."""

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    text = part({"alg": "HS256", "typ": "JWT", "kid": kid}) + b"." + part(claims)
    signature = base64.urlsafe_b64encode(hmac.digest(secret, text, hashlib.sha256)).rstrip(b"=")
    return (text + b"." + signature).decode()


def test_texts_that_are_no_token_are_refused(client: TestClient, issuer: Issuer) -> None:
    token = issuer.token()
    head, body, signature = token.split(".")
    deep = base64.urlsafe_b64encode(b'{"alg": ' + b"[" * 20_000).decode().rstrip("=")
    broken = (
        f"{deep}.{body}.{signature}",
        f"{head}.{body}.",
        f"{head}.{body}",
        "a.b.c",
        "..",
        f"{head}.{body}x.{signature}",
        "x" * 8000,
    )
    for text in broken:
        assert status(client, text) == 401


def test_keys_are_rotated(client: TestClient, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    old = issuer.token()
    assert status(client, old) == 200
    issuer.private = {"two": ec.generate_private_key(ec.SECP256R1())}
    new = issuer.token("two", "ES256")
    assert status(client, new) == 401  # the issuer was asked a moment ago
    assert status(client, old) == 200
    monkeypatch.setattr(provider, "AGAIN_SECONDS", 0.0)
    assert status(client, new) == 200
    assert status(client, old) == 401  # also of a token that was good before


def test_while_the_issuer_is_away_its_keys_hold(client: TestClient, issuer: Issuer, settings: Settings) -> None:
    assert status(client, issuer.token()) == 200
    issuer.stop()
    assert status(client, issuer.token(sub="grace")) == 200


def test_without_the_issuers_keys_it_is_503(client: TestClient, issuer: Issuer) -> None:
    issuer.calls_itself = "https://another.example"
    assert status(client, issuer.token()) == 503
    assert status(client, "x.y.z") == 401


def test_an_issuer_is_asked_over_https_alone() -> None:
    with pytest.raises(ValueError, match="https"):
        Settings(oidc_issuer="http://issuer.example")


def test_an_issuers_keys_are_asked_for_over_https_alone(
    client: TestClient, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.keys_at = "http://issuer.example/keys"
    assert status(client, issuer.token()) == 503
    assert "over https only" in caplog.text


def test_a_key_of_another_algorithm_leaves_the_others(client: TestClient, issuer: Issuer) -> None:
    issuer.more = [{**issuer.jwk("one"), "kid": "a", "alg": "RSA-OAEP"}, {"kty": "OKP", "crv": "X25519", "kid": "b"}]
    assert status(client, issuer.token()) == 200


async def test_an_issuer_that_hangs_holds_everybody_up_once(
    settings: Settings, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "FETCH_SECONDS", 1.2)
    monkeypatch.setattr(provider, "AGAIN_SECONDS", 0.0)
    known = provider.Provider(settings.model_copy(update={"oidc_issuer": issuer.url, "oidc_keys_seconds": 0.001}))
    await known.caller(issuer.token())
    monkeypatch.setattr(provider, "AGAIN_SECONDS", 1.0)
    await asyncio.sleep(1.0)
    issuer.answering.clear()
    requested = issuer.requests
    callers = await asyncio.gather(*(known.caller(issuer.token(sub=f"caller-{i}")) for i in range(4)))
    assert [caller.tenant for caller in callers] == ["blue"] * 4
    assert issuer.requests == requested + 1
