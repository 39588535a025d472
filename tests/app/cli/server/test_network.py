"""The API on a network: TLS by settings, or proxies in front, of which only those that are named are believed."""

from __future__ import annotations

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.server.serve import Server, bind, configuration
from app.database.engine import Database
from app.settings import Settings
from tests.servers import free_port

STRANGER, CALLER, FURTHER = "192.0.2.1", "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage of this process, which does more than serve, is collected as ever."""
    monkeypatch.setattr("app.main.tune_garbage_collection", lambda: None)


@contextmanager
def serving(settings: Settings, database: Database, **changed: Any) -> Iterator[int]:
    """The API with these settings on loopback; gives its port."""
    settings = settings.model_copy(update={"port": 0, "allowed_hosts": (), **changed})
    server = Server(configuration(settings, database))
    (listener,) = bind(settings)
    thread = threading.Thread(target=server.run, args=([listener],))
    with closing(listener):
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(60)


def seen_from(port: int, forwarded: str) -> str:
    """From where the audit says that a request came."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        fields = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
        response = http.post("/keys", json={"scopes": ["admin"]}, headers=fields)
        assert response.status_code == 201, response.text
        (entry,) = http.get("/audit", headers={"Authorization": f"Bearer {response.json()['key']}"}).json()["items"]
    return str(entry["address"])


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        ((), CALLER, "127.0.0.1"),
        ((STRANGER,), CALLER, "127.0.0.1"),
        (("127.0.0.1",), CALLER, CALLER),
        (("127.0.0.0/8",), CALLER, CALLER),
        (("127.0.0.1",), f"{FURTHER}, {CALLER}", CALLER),  # what the caller itself has sent along counts for nothing
    ],
)
def test_forwarded_headers_are_taken_from_named_proxies_alone(
    settings: Settings, database: Database, proxies: tuple[str, ...], forwarded: str, expected: str
) -> None:
    with serving(settings, database, trusted_proxies=proxies) as port:
        assert seen_from(port, forwarded) == expected


def test_tls_by_settings(settings: Settings, database: Database, tmp_path: Path) -> None:
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    options = ["-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *options, "-keyout", str(key), "-out", str(chain)]
    subprocess.run(command, check=True, capture_output=True)
    trusting = ssl.create_default_context(cafile=chain)
    with serving(settings, database, tls_certificate=chain, tls_key=key) as port:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60)
        assert httpx.get(f"https://127.0.0.1:{port}/healthz", verify=trusting, timeout=60).status_code == 200
        there = {"STEWARD_PORT": str(port), "STEWARD_HOST": "0.0.0.0", "STEWARD_URL": None}  # noqa: S104 - of all of them
        tls = {"STEWARD_TLS_CERTIFICATE": str(chain), "STEWARD_TLS_KEY": str(key)}
        assert [CliRunner().invoke(cli, ["health"], env=there | one).exit_code for one in (tls, {})] == [0, 1]
        url = f"https://127.0.0.1:{port}"
        cases = [(chain, 0, "none\n"), (None, 3, "SSL_CERT_FILE names the certificate")]
        cases += [(key, 3, f"SSL_CERT_FILE={key}: "), (tmp_path / "none", 3, "none: No such file")]
        for file, status, told in cases:
            there = {"STEWARD_URL": url, "SSL_CERT_FILE": None if file is None else str(file)}
            listed = CliRunner().invoke(cli, ["workload", "list"], env=there)
            assert (listed.exit_code, told in listed.output) == (status, True), listed.output


def test_health_asks_the_service_that_is_named_or_the_local_one(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STEWARD_URL", "STEWARD_TLS_CERTIFICATE"):
        monkeypatch.delenv(name, raising=False)
    closed = f"http://127.0.0.1:{free_port()}"
    with serving(settings, database) as port:
        there = f"http://127.0.0.1:{port}/"

        def status(*options: str, url: str | None = None, local: int = free_port()) -> int:
            requested = CliRunner().invoke(cli, [*options], env={"STEWARD_URL": url, "STEWARD_PORT": str(local)})
            assert requested.exit_code == 0 or closed in requested.stderr or str(local) in requested.stderr
            return requested.exit_code

        assert (status("health", local=port), status("health")) == (0, 1)
        assert (status("health", url=there), status("health", url=closed, local=port)) == (0, 1)
        assert (status("health", "--url", there, url=closed), status("health", "--url", closed, url=there)) == (0, 1)
        assert (status("--url", there, "health"), status("--url", closed, "health", url=there)) == (0, 1)
        wrong = CliRunner().invoke(cli, ["health"], env={"STEWARD_PORT": "eighty"})
        assert (wrong.exit_code, "STEWARD_PORT='eighty'" in wrong.stderr) == (2, True)
        assert "'ftp://x' is not the address" in CliRunner().invoke(cli, ["health", "--url", "ftp://x"]).stderr
